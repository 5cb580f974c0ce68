package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// mixedAway is a conversation whose host is on another server. Its other members are bob and sam.
// sam's server knows only the SWICG draft.
type mixedAway struct {
	*away
	sam vocab.ID
	seq int64
}

func newMixedAway(t *testing.T) *mixedAway {
	t.Helper()
	w := &mixedAway{away: newAway(t), sam: peertest.New(t, "127.0.0.3").Actor("/users/sam").ID, seq: 1}
	w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
		j, err := tx.Joined.Find(ctx, w.where)
		if err != nil {
			return err
		}
		j.Mixed = true
		if _, err := tx.Joined.Save(ctx, *j, start); err != nil {
			return err
		}
		if _, err := tx.Joined.SetRoster(ctx, w.where, []vocab.ID{vocab.ID(w.host.Identity), vocab.ID(w.him()), w.sam}, []string{user.RoleAdmin, user.RoleMember, user.RoleMember}, 1); err != nil {
			return err
		}
		return tx.Hosted.NoteForeign(ctx, w.where, []vocab.ID{w.sam})
	})
	return w
}

// adds delivers an Add of the host's to bob. The Add says that the host's log contains a message
// of bob's.
func (w *mixedAway) adds(content []byte, epoch int64) {
	w.Helper()
	w.seq++
	uri := w.peer.Origin + w.uri
	told := vocab.Doc{"mlsGroupId": w.group.ID}
	told.SetCount("seq", w.seq)
	told.SetCount("mlsEpoch", epoch)
	told.SetCount("mlsGeneration", 0)
	raw := vocab.Doc{"type": "Add", "id": uri + "/activities/" + uuid.NewString(), "actor": w.host.Identity, "to": []any{w.him()}, "target": uri, "object": vocab.Doc{"type": "PrivateMessage", "id": fmt.Sprint(uri, "/log/", w.seq),
		"attributedTo": w.him(), "to": []any{w.him()}, "mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString(content), "lwMetadata": told}}.JSON()
	a, err := vocab.ParseActivity(raw)
	if err != nil {
		w.Fatal(err)
	}
	w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
		o, err := conversation.ReceiveEntry(ctx, tx, conversation.Arrival{User: w.bob, Me: vocab.ID(w.him()), Activity: a, Sender: &vocab.Actor{ID: vocab.ID(w.host.Identity)}, Now: start, Applied: start})
		if err == nil && !o.Kept {
			w.Errorf("the entry is %+v", o)
		}
		return err
	})
}

// wantOwed fails the test unless bob owes exactly these deliveries, in this order. Each text in
// want has the recipient and the type of the object. wantOwed returns the activities.
func (w *mixedAway) wantOwed(what string, want ...string) (all []vocab.Doc) {
	w.Helper()
	var got []string
	w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
		for {
			due, err := tx.Deliveries.Claim(ctx, "test", start.Add(time.Hour), time.Minute, user.ClaimBounds{Most: 100})
			if err != nil || len(due) == 0 {
				return err
			}
			var done []user.Outcome
			for _, d := range due {
				doc, err := vocab.ParseDoc(d.Body)
				if err != nil {
					return err
				}
				all, got = append(all, doc), append(got, fmt.Sprint(d.Targets[0], " ", doc.Sub("object").Text("type")))
				done = append(done, user.Outcome{Delivery: d.ID, Status: user.DeliveryDelivered})
			}
			if _, err := tx.Deliveries.Finish(ctx, "test", done, start); err != nil {
				return err
			}
		}
	})
	if !slices.Equal(got, want) {
		w.Errorf("%s: %q is owed, want %q", what, got, want)
	}
	return all
}

func (w *mixedAway) says(content []byte, status int) {
	w.Helper()
	w.post(w.him(), w.his+"/messages", map[string]any{"message": content}).want(w.T, status)
}

// If the actor of one member cannot be found, the other members still get bob's message.
func TestAMemberThatCannotBeFoundSilencesNobody(t *testing.T) {
	t.Parallel()
	w := newMixedAway(t)
	nobody := vocab.ID(strings.Replace(string(w.sam), "/users/sam", "/users/nobody", 1))
	w.write(w.bob, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Conversations.Join(ctx, w.where, []vocab.ID{nobody}, user.RoleMember, 1); err != nil {
			return err
		}
		return tx.Hosted.NoteForeign(ctx, w.where, []vocab.ID{nobody})
	})
	w.answers("/messages", 201, plainJSON, map[string]any{"seq": 2, "epoch": 1, "generation": 0})
	words := w.group.Message()
	w.says(words, 201)
	w.adds(words, 1)
	w.wantOwed("a message", string(w.sam)+" PrivateMessage")
}

// sam's server knows only the draft, so bob's server sends bob's messages to sam as Creates. It
// sends each message once, after the host has said that its log contains the message.
func TestAMessageLeavesOnceItsHostHasPutItInOrder(t *testing.T) {
	t.Parallel()
	w := newMixedAway(t)
	w.answers("/messages", 201, plainJSON, map[string]any{"seq": 2, "epoch": 1, "generation": 0})
	words := w.group.Message()
	w.says(words, 201)
	w.wantOwed("before the host's word")
	w.says(words, 201) // the program repeats the request
	w.adds(words, 1)
	all := w.wantOwed("after it", string(w.sam)+" PrivateMessage")
	if len(all) == 1 {
		d, object := all[0], all[0].Sub("object")
		id, _ := d.ID()
		to, _ := d.IDs("to")
		if d.Text("type") != "Create" || d.Text("actor") != w.him() || !id.SameOrigin(vocab.ID(w.him())) || !slices.Contains(to, w.sam) || len(to) != 2 || object.Text("attributedTo") != w.him() ||
			object.Text("content") != base64.StdEncoding.EncodeToString(words) || object.Text("context") != w.peer.Origin+w.uri {
			t.Errorf("the Create is %s", d.JSON())
		}
	}
	w.says(words, 201)
	w.wantOwed("when it is sent again")
}

// A host adds messages to its log in bob's name. bob's device did not write them, or the host had
// refused them. bob's server does not send them in bob's name.
func TestNothingLeavesThatBobDidNotSay(t *testing.T) {
	t.Parallel()
	w := newMixedAway(t)
	w.adds(w.group.Message(), 1)
	w.wantOwed("in bob's name")
	w.answers("/messages", 422, isProblem, map[string]any{"type": "https://p/not-a-message"})
	refused := w.group.Message()
	w.says(refused, 422)
	w.adds(refused, 1)
	w.wantOwed("what was refused")
}

// The host's answer to a message is lost. bob's server sends the message to sam only after the
// host has added it to its log. If bob blocks sam by then, sam does not get it.
func TestAMessageWhoseAnswerIsLostLeavesLater(t *testing.T) {
	t.Parallel()
	w := newMixedAway(t)
	w.answers("/messages", 500, isProblem, map[string]any{})
	first, second := w.group.Message(), w.group.Message()
	w.says(first, 503)
	w.says(second, 503)
	w.wantOwed("while nobody knows")
	w.adds(first, 1)
	w.wantOwed("of the first", string(w.sam)+" PrivateMessage")
	w.block(w.bob, w.sam)
	w.adds(second, 1)
	w.wantOwed("of the second, to a blocked actor")
}

// A commit adds an actor whose server knows only the draft. The host refuses the commit because
// its log already contains it, so bob's server still waits for the host's Add. Then bob's server
// sends the commit before the actor's Welcomes.
func TestACommitLeavesBeforeItsWelcomes(t *testing.T) {
	t.Parallel()
	w := newMixedAway(t)
	tim, err := vocab.ParseActor(vocab.Doc{"id": "https://swicg.example/users/tim", "type": "Person", "inbox": "https://swicg.example/users/tim/inbox"}.JSON())
	if err == nil {
		err = w.store.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: tim, FetchedAt: start})
	}
	if err != nil {
		t.Fatal(err)
	}
	phone, laptop, tablet := mlstest.NewDevice(string(tim.ID), start), mlstest.NewDevice(string(tim.ID), start), mlstest.NewDevice(string(tim.ID), start)
	commit, next := w.group.SealedCommit(mlstest.Change{Add: []*mlstest.Device{phone, laptop, tablet}})
	state := map[string]any{"groupId": w.group.ID, "generation": 0, "epoch": 2, "status": "active", "missing": []any{
		map[string]any{"seq": 2, "generation": 0, "epoch": 1, "kind": "commit", "sender": w.him(), "content": commit, "at": start}}}
	w.answers("/commits", 409, isProblem, map[string]any{"type": "https://p/epoch-conflict", "conversation": state})
	w.post(w.him(), w.his+"/commits", map[string]any{"commit": commit, "added": [][]byte{phone.Package, laptop.Package, tablet.Package}, "welcomes": [][]byte{next.Welcome(phone), next.Welcome(laptop, tablet)}}).want(t, 409)
	w.adds(commit, 1)
	all := w.wantOwed("of the commit", string(w.sam)+" PrivateMessage", phone.Identity+" Welcome", phone.Identity+" Welcome")
	if len(all) == 3 {
		if to, err := all[1].IDs("to"); err != nil || !slices.Equal(to, []vocab.ID{tim.ID}) {
			t.Errorf("the Welcome is for %v, %v", to, err)
		}
	}
}
