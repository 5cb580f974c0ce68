package conversation

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// groupPrefix begins the id of each MLS group that is put in order here; a UUID follows.
const groupPrefix = "urn:uuid:"

// Create makes a conversation that the user hosts, out of a new MLS group in which a device of the
// user is alone.
func (r *Registry) Create(ctx context.Context, u vocab.Username, groupInfo []byte) (View, error) {
	me, now := r.Actors.ID(u), r.Now()
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	c := newConversation(me, string(group.GroupID), now)
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.AddConversation(ctx, c); err != nil {
			return err
		}
		v, err = host(ctx, tx, c, groupInfo)
		return err
	})
	return v, explainTaken(err)
}

// newConversation returns an encrypted conversation that somebody hosts.
func newConversation(host vocab.ID, group string, now time.Time) db.Conversation {
	id := uuid.Must(uuid.NewV7())
	return db.Conversation{ID: id, URI: host + "/conversations/" + vocab.ID(id.String()), Mode: db.ModeEncrypted, Host: host, GroupID: group, CreatedAt: now}
}

// host begins to put a conversation in order, whose host is alone in its MLS group.
func host(ctx context.Context, tx *db.Tx, c db.Conversation, groupInfo []byte) (View, error) {
	if err := tx.HostConversation(ctx, db.HostedConversation{ID: c.ID, GroupInfo: groupInfo}, c.CreatedAt); err != nil {
		return View{}, err
	}
	if err := tx.JoinConversation(ctx, c.ID, []vocab.ID{c.Host}, db.RoleAdmin, 0); err != nil {
		return View{}, err
	}
	return readView(ctx, tx, c.ID, c.Host)
}

func explainTaken(err error) error {
	if db.IsTakenGroup(err) {
		err = fault.Wrap(fault.Conflict, "the MLS group has a conversation already", err).WithCode("group_taken").At("/groupInfo")
	}
	return err
}

// readNewGroup reads the group info of a group that begins, with a device of one actor in it.
func readNewGroup(groupInfo []byte, actor vocab.ID) (*mls.GroupInfo, error) {
	if len(groupInfo) > maxCommit {
		return nil, fault.New(fault.TooLarge, "a GroupInfo has 1 MiB at most")
	}
	group, err := mls.ParseGroupInfo(groupInfo)
	if err != nil {
		return nil, unprocessable("bad_group_info", fault.Public(err)).At("/groupInfo")
	}
	switch id, is := strings.CutPrefix(string(group.GroupID), groupPrefix); {
	case !is || !isUUID(id):
		return nil, staleInfo("the id of the MLS group is urn:uuid: and a UUID in lower case")
	case group.Epoch != 0 || len(group.Members) != 1:
		return nil, staleInfo("a conversation begins with a group at epoch 0, a ratchet tree and one device in it")
	case string(group.Members[0].Identity) != string(actor):
		return nil, staleInfo("the credential of the device is a basic one with your id")
	case group.Verify() != nil:
		return nil, staleInfo("the signature of the GroupInfo does not hold, or its cipher suite is not supported")
	}
	return group, nil
}

func isUUID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}
