package outbox

import (
	"context"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

var base64Of = base64.StdEncoding.EncodeToString

func (d *desk) does(action string, params map[string]any) Result {
	d.t.Helper()
	r, err := d.dispatch(action, params)
	if err != nil {
		d.t.Fatalf("%s: %v", action, err)
	}
	return r
}

// commitParams returns the parameters of a commit and the group after it.
func commitParams(r Result, by *mlstest.Device, g *mlstest.Group, c mlstest.Change) (map[string]any, *mlstest.Group) {
	commit, next := g.Commit(by, c)
	params := map[string]any{"conversationId": r.Conversation, "commit": base64Of(commit), "groupInfo": base64Of(next.Info(by))}
	if len(c.Add) > 0 {
		params["welcomes"] = []string{base64Of(next.Welcome(c.Add...))}
	}
	return params, next
}

// A user creates a conversation, adds and removes members, and leaves, all by actions. Each answer
// has the place in the log, even if the action is repeated under its key.
func TestAConversationIsPlayedByActions(t *testing.T) {
	t.Parallel()
	d := town(t)
	phone, his := mlstest.NewDevice(string(me), time.Now()), mlstest.NewDevice(bob, time.Now())
	group := mlstest.NewGroup(phone)
	made := d.does("CreateConversation", map[string]any{"groupInfo": base64Of(group.Info(phone))})
	if c, err := d.Conversations.Find(t.Context(), d.alice, made.Conversation); err != nil || c.URI != made.ObjectID {
		t.Fatalf("%+v, %v", c, err)
	}
	d.refused("CreateConversation", map[string]any{"groupInfo": base64Of(group.Info(phone))}, fault.Conflict, "group_taken")

	add, grown := commitParams(made, phone, group, mlstest.Change{Add: []*mlstest.Device{his}})
	d.refused("AddMembers", add, fault.Invalid, "idempotency_key_missing")
	d.refused("RemoveMember", add, fault.Unprocessable, "bad_proposal")
	private := map[string]any{"conversationId": made.Conversation, "commit": base64Of(group.PrivateCommit())}
	if _, err := d.keyed("nothing", "AddMembers", private); fault.Code(err) != "bad_proposal" {
		t.Errorf("a commit that is not said to add a device: %v", err)
	}
	private["added"] = []string{base64Of(his.Package)}
	if _, err := d.keyed("private", "AddMembers", private); fault.Code(err) != "commit_not_public" {
		t.Errorf("a commit that nobody can judge: %v", err)
	}
	first, err := d.keyed("add", "AddMembers", add)
	if err != nil || first.Accepted == nil || first.Accepted.Seq != 1 || first.Accepted.Epoch != 1 || first.ObjectID != made.ObjectID || first.Job != nil {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := d.keyed("add", "AddMembers", add); err != nil || !again.Replayed || *again.Accepted != *first.Accepted || again.Conversation != made.Conversation {
		t.Errorf("again: %+v, %v", again, err)
	}
	late, _ := commitParams(made, phone, group, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(carol, time.Now())}})
	if _, err := d.keyed("late", "AddMembers", late); fault.Code(err) != "epoch_conflict" {
		t.Errorf("a late commit: %v", err)
	}

	remove, left := commitParams(made, phone, grown, mlstest.Change{Remove: []*mlstest.Device{his}})
	if _, err := d.keyed("wrong", "AddMembers", remove); fault.Code(err) != "bad_proposal" {
		t.Errorf("a removal that is said to add: %v", err)
	}
	if _, err := d.keyed("open", "RemoveMember", remove); fault.Code(err) != "not_private" { // bob's server knows only the SWICG draft
		t.Errorf("a commit in the open: %v", err)
	}
	remove["commit"], remove["removed"] = base64Of(grown.PrivateCommit()), []string{bob}
	if r, err := d.keyed("remove", "RemoveMember", remove); err != nil || r.Accepted.Epoch != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if v, err := d.Conversations.View(t.Context(), conversation.Place{Host: d.alice, ID: made.Conversation}, me); err != nil || len(v.Members) != 1 {
		t.Errorf("%d members, %v", len(v.Members), err)
	}
	d.refused("LeaveConversation", map[string]any{"conversationId": made.Conversation, "proposal": base64Of(left.Message())}, fault.Unprocessable, "bad_proposal")
	if r := d.does("LeaveConversation", map[string]any{"conversationId": made.Conversation, "proposal": base64Of(left.Leave(phone))}); r.Accepted.Seq != 3 {
		t.Errorf("%+v", r)
	}
}

// Actions begin a conversation of two, begin the conversation's upgrade and mark it as read. While
// a conversation is not closed, it gets no successor.
func TestAConversationOfTwoIsPlayedByActions(t *testing.T) {
	t.Parallel()
	d := town(t)
	open := d.does("CreateConversation", map[string]any{"with": bob})
	if again := d.does("CreateConversation", map[string]any{"with": bob}); again.Conversation != open.Conversation {
		t.Errorf("%v and %v are with the same actor", open.Conversation, again.Conversation)
	}
	phone := mlstest.NewDevice(string(me), time.Now())
	upgrade := map[string]any{"upgrades": open.Conversation, "groupInfo": base64Of(mlstest.NewGroup(phone).Info(phone))}
	d.refused("CreateConversation", upgrade, fault.Forbidden, "encryption_not_permitted")
	d.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.FriendOf, Status: user.Accepted, Activity: bob + "/offer", Direction: user.Inbound}, d.Now())
	})
	if r := d.does("CreateConversation", upgrade); r.Conversation != open.Conversation || r.ObjectID != open.ObjectID {
		t.Errorf("the upgrade of %v is %+v", open.Conversation, r)
	}
	d.refused("CreateConversation", map[string]any{"predecessor": open.Conversation, "groupInfo": base64Of(mlstest.NewGroup(phone).Info(phone))}, fault.Conflict, "conversation_open")

	d.must("SendMessage", map[string]any{"conversationId": open.Conversation, "content": "hi"})
	said := d.sent()
	told := len(d.events())
	for range 2 {
		if r := d.does("MarkRead", map[string]any{"conversationId": open.Conversation, "entry": 1}); r.Conversation != open.Conversation {
			t.Errorf("%+v", r)
		}
	}
	if got := d.events()[told:]; !slices.Equal(got, []string{"conversation.read"}) {
		t.Errorf("events %q, want conversation.read when the mark moved", got)
	}
	if c := d.conversationWith(bob); c.ReadEntry != 1 || d.sent() != said {
		t.Errorf("read up to %d, %d activities", c.ReadEntry, d.sent()-said)
	}
}
