package outbox

import (
	"context"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// conversationWith returns the conversation that alice has with an actor.
func (d *desk) conversationWith(actor vocab.ID) (c *user.Conversation) {
	d.t.Helper()
	d.write(func(ctx context.Context, tx *user.Tx) (err error) {
		c, err = tx.Pairs.Find(ctx, actor)
		return err
	})
	if c == nil {
		d.t.Fatalf("there is no conversation with %s", actor)
	}
	return c
}

// Row 25 of docs/conversations.md, Cases and their tests. A private Note makes a conversation.
// Once the conversation is encrypted, no action sends plain text to the other actor, even after
// the friendship has ended.
func TestRow25NothingIsSaidInTheOpenOnceItIsEncrypted(t *testing.T) {
	t.Parallel()
	d := town(t)
	first := d.must("SendMessage", map[string]any{"recipientUri": bob, "content": "psst"}).Object
	alone := string(d.group("alone", bob))
	d.must("CreateNote", map[string]any{"content": "psst", "to": []string{alone}})
	d.must("UpdateObject", map[string]any{"objectId": first, "content": "hush"})
	c := d.conversationWith(bob)
	d.must("SendMessage", map[string]any{"conversationId": c.ID, "content": "and again"})
	d.must("CreateNote", map[string]any{"content": "to you both", "to": []string{bob, carol}})
	if kinds, _, err := d.Conversations.Timeline(t.Context(), d.alice, c.ID, user.TimelineEnd, 10); err != nil || len(kinds) != 2 || !kinds[0].Own {
		t.Errorf("the timeline is %+v, %v", kinds, err)
	}

	d.write(func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: bob, Type: user.FriendOf, Status: user.Accepted, Activity: bob + "/offer", Direction: user.Inbound}, d.Now())
	})
	phone, his := mlstest.NewDevice(string(me), time.Now()), mlstest.NewDevice(bob, time.Now())
	group := mlstest.NewGroup(phone)
	if _, err := d.Conversations.Upgrade(t.Context(), d.alice, c.ID, group.Info(phone)); err != nil {
		t.Fatal(err)
	}
	d.must("SendMessage", map[string]any{"recipientUri": bob, "content": "still in the open"})
	commit, next := group.Commit(phone, mlstest.Change{Add: []*mlstest.Device{his}})
	_, err := d.Conversations.Commit(t.Context(), conversation.Place{Host: d.alice, ID: c.ID},
		conversation.Commit{Caller: me, Key: "k", Message: commit, GroupInfo: next.Info(phone), Welcomes: [][]byte{next.Welcome(his)}})
	if err != nil {
		t.Fatal(err)
	}
	sealed := base64.StdEncoding.EncodeToString(next.Message())
	said := d.sent()
	inTheOpen := func() {
		t.Helper()
		for _, c := range []struct {
			action string
			params map[string]any
		}{
			{"SendMessage", map[string]any{"recipientUri": bob, "content": "psst"}},
			{"CreateNote", map[string]any{"content": "psst", "to": []string{bob}}},
			{"CreateNote", map[string]any{"content": "psst", "to": []string{alone}, "visibility": "direct"}},
			{"CreateArticle", map[string]any{"content": "psst", "title": "psst", "to": []string{bob}}},
			{"UpdateObject", map[string]any{"objectId": first, "content": "a new secret"}},
		} {
			d.refused(c.action, c.params, fault.Unprocessable, "conversation_encrypted")
		}
		if n := d.sent(); n != said {
			t.Errorf("%d activities were stored", n-said)
		}
	}
	inTheOpen()
	d.refused("SendMessage", map[string]any{"conversationId": c.ID, "content": "psst"}, fault.Unprocessable, "mls_ciphertext_required")
	d.refused("SendMessage", map[string]any{"conversationId": c.ID, "content": base64.StdEncoding.EncodeToString(commit)}, fault.Unprocessable, "mls_ciphertext_required")
	r, err := d.keyed("once", "SendMessage", map[string]any{"conversationId": c.ID, "content": sealed})
	if err != nil || r.Accepted == nil || r.Accepted.Seq != 2 || r.ObjectID != c.URI {
		t.Fatalf("%+v, %v", r, err)
	}
	if again, err := d.keyed("once", "SendMessage", map[string]any{"conversationId": c.ID, "content": sealed}); err != nil || !again.Replayed || again.Accepted.Seq != 2 {
		t.Errorf("again: %+v, %v", again, err)
	}

	d.must("RemoveRelationship", map[string]any{"actorUri": bob, "relationshipType": "friendOf"})
	said = d.sent()
	if c := d.conversationWith(bob); c.ClosedAt == nil {
		t.Error("the conversation outlives the friendship")
	}
	d.read(func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Events.List(ctx, 0, 1000)
		n := slices.IndexFunc(all, func(e user.Event) bool { return e.Type == "conversation.closed" })
		if n < 0 {
			t.Fatalf("none of %d events says that the conversation is closed", len(all))
		}
		if d, _ := vocab.ParseDoc(all[n].Payload); d.Text("actorUri") != string(me) || d.Text("trust") != "self" {
			t.Errorf("the conversation is said to be closed by %s", all[n].Payload)
		}
		return err
	})
	inTheOpen()
	d.refused("SendMessage", map[string]any{"conversationId": c.ID, "content": base64.StdEncoding.EncodeToString(next.Message())}, fault.Conflict, "conversation_closed")
	d.refused("SendMessage", map[string]any{"conversationId": uuid.NewString(), "content": "x"}, fault.NotFound, "no_conversation")
}
