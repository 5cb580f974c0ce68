package conversation

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// endless is a host whose log has no end: one message a page.
type endless struct {
	Hosts
	group *mlstest.Group
	by    *mlstest.Device
	asked int
}

func (h *endless) Ask(_ context.Context, q transport.Question) (*transport.Reply, error) {
	h.asked++
	u, err := url.Parse(string(q.URL))
	if err != nil {
		return nil, err
	}
	after, err := strconv.Atoi(u.Query().Get("after"))
	if err != nil {
		return nil, err
	}
	body, err := vocab.Marshal(map[string]any{"more": true, "items": []any{
		map[string]any{"seq": after + 1, "epoch": 1, "sender": h.by.Identity, "content": h.group.Message(), "at": time.Now()}}})
	return &transport.Reply{Status: 200, Body: body}, err
}

// here has one user, without keys; nobody else is known.
type here struct {
	Local
	People
}

func (here) ID(vocab.Username) vocab.ID                            { return "https://us.example/users/bob" }
func (here) Owner(vocab.ID) (u vocab.Username, is bool)            { return u, false }
func (here) Keys(vocab.Username) (k transport.Keys, err error)     { return k, nil }
func (here) Known(context.Context, vocab.ID) (*vocab.Actor, error) { return nil, nil }

// A log that never ends is read no faster than its host may be asked, and while no device of the
// user has joined no further than a page.
func TestALogWithoutAnEndIsReadWithinBounds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		confirmed bool
		asked     int
		limited   bool
	}{"joined": {true, policy.LogPages.Rate.Burst, true}, "not joined": {false, 1, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, now := dbtest.New(t), time.Now()
			u := dbtest.User(t, store, "bob")
			dora := mlstest.NewDevice("https://peer.example/users/dora", now)
			h := &endless{group: mlstest.NewGroup(dora), by: dora}
			_, h.group = h.group.Commit(dora, mlstest.Change{})
			j := db.JoinedConversation{ID: uuid.New(), URI: vocab.ID(dora.Identity + "/conversations/" + uuid.NewString()), Host: vocab.ID(dora.Identity), GroupID: h.group.ID,
				Epoch: 1, LastSeq: 1_000_000, WholeSeq: 1, Status: db.StatusActive, Confirmed: tt.confirmed}
			if err := store.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error { return tx.AddJoined(ctx, j, now) }); err != nil {
				t.Fatal(err)
			}
			d := MemberDeps{Store: store, Local: here{}, Hosts: h, Keys: here{}, People: here{}, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
			d.Registry = NewRegistry(Deps{Store: store, Actors: nobody{}, Log: d.Log, Now: d.Now})
			err := NewMembers(d).gaps.fill(copyKey{u, j.ID})
			if limited := fault.KindOf(err) == fault.RateLimited && err != nil; limited != tt.limited || err != nil && !limited {
				t.Errorf("it ends with %v", err)
			}
			if h.asked != tt.asked {
				t.Errorf("the host was asked %d times, want %d", h.asked, tt.asked)
			}
		})
	}
}
