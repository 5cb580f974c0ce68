package conversation

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// speaking has one user, and finds every actor. Its proofs are empty: it signs nothing.
type speaking struct{ here }

func (s speaking) NewActivityID(u vocab.Username) vocab.ID { return s.ID(u) + "/activities/1" }
func (s speaking) NewObjectID(u vocab.Username) vocab.ID   { return s.ID(u) + "/objects/1" }
func (speaking) Prove(_ vocab.Username, d vocab.Doc, _ time.Time) (json.RawMessage, error) {
	return d.JSON(), nil
}
func (speaking) Resolve(_ context.Context, id vocab.ID) (*vocab.Actor, error) {
	return &vocab.Actor{ID: id, Inbox: id + "/inbox"}, nil
}

// Bob's block of dora is being stored while bob sends a message to a group without a host. Dora
// does not get the message.
func TestAMessageWaitsForABlockThatIsBeingStored(t *testing.T) {
	t.Parallel()
	store, now := dbtest.New(t), time.Now()
	u := dbtest.User(t, store, "bob")
	const dora = vocab.ID("https://peer.example/users/dora")
	group := mlstest.NewGroup(mlstest.NewDevice("https://us.example/users/bob", now))
	c := user.Conversation{ID: uuid.New(), GroupID: group.ID}
	j := user.JoinedConversation{ID: c.ID, URI: "urn:uuid:1", GroupID: group.ID, Status: user.StatusActive, Confirmed: true}
	write := func(work func(context.Context, *user.Tx) error) {
		if err := store.Write(t.Context(), u, work); err != nil {
			t.Fatal(err)
		}
	}
	write(func(ctx context.Context, tx *user.Tx) error { return tx.Joined.Add(ctx, j, now) })
	m := NewMembers(MemberDeps{Store: store, Local: speaking{}, People: speaking{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	sent := make(chan error, 1)
	write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.ChangeAudience(ctx); err != nil {
			return err
		}
		go func() { _, err := m.SendTo(t.Context(), u, &c, group.Message(), []vocab.ID{dora}); sent <- err }()
		dbtest.AwaitLock(t, store, u, sent)
		return tx.Blocks.Add(ctx, user.Block{Actor: dora, Direction: user.Outbound, Activity: "https://us.example/users/bob/activities/2"}, now)
	})
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	write(func(ctx context.Context, tx *user.Tx) error {
		open, err := tx.Deliveries.CountOpen(ctx)
		if len(open) > 0 {
			t.Errorf("owed is %+v, want nothing", open)
		}
		return err
	})
}
