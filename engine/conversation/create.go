package conversation

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// groupPrefix is the prefix of the id of each MLS group that a user of this server hosts, and of
// the URI of each conversation without a host. A UUID follows.
const groupPrefix = "urn:uuid:"

// Create makes a conversation that the user hosts. The parameter groupInfo describes the new MLS
// group, whose only member is a device of the user.
func (r *Registry) Create(ctx context.Context, u vocab.Username, groupInfo []byte) (View, error) {
	me, now := r.Actors.ID(u), r.Now()
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	c := newConversation(me, string(group.GroupID), now)
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Conversations.Add(ctx, c); err != nil {
			return err
		}
		v, err = host(ctx, tx, c, groupInfo)
		return err
	})
	return v, explainTaken(err, "/groupInfo")
}

// newConversation returns an encrypted conversation with the given host.
func newConversation(host vocab.ID, group string, now time.Time) user.Conversation {
	id := uuid.Must(uuid.NewV7())
	return user.Conversation{ID: id, URI: host + "/conversations/" + vocab.ID(id.String()), Mode: user.ModeEncrypted, Host: host, GroupID: group, CreatedAt: now}
}

// host begins the log of a conversation. The actor c.Host becomes the only member, as admin.
func host(ctx context.Context, tx *user.Tx, c user.Conversation, groupInfo []byte) (View, error) {
	if err := tx.Hosted.Add(ctx, user.HostedConversation{ID: c.ID, GroupInfo: groupInfo}, c.CreatedAt); err != nil {
		return View{}, err
	}
	if err := tx.Conversations.Join(ctx, c.ID, []vocab.ID{c.Host}, user.RoleAdmin, 0); err != nil {
		return View{}, err
	}
	return readView(ctx, tx, c.ID, c.Host)
}

const takenGroup = "the MLS group has a conversation already"

// explainTaken returns a Conflict if err says that the MLS group already has a conversation. It
// returns every other error unchanged. The parameter at is a JSON pointer to the group in the
// request.
func explainTaken(err error, at string) error {
	if user.IsTakenGroup(err) {
		err = fault.Wrap(fault.Conflict, takenGroup, err).WithCode("group_taken").At(at)
	}
	return err
}

// readNewGroup reads and checks the GroupInfo of a new group, whose only member is a device of
// the actor.
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
