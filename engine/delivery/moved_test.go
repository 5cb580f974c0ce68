package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestWhatIsForOneMovesToThatOneAlone(t *testing.T) {
	t.Parallel()
	const old, own, shared = vocab.ID("https://p.example/in"), vocab.ID("https://p.example/bob/inbox"), vocab.ID("https://p.example/inbox")
	deps := &deps{}
	deps.known.Store(&vocab.Actor{ID: "https://p.example/bob", Inbox: own, SharedInbox: shared})
	s := &sender{Deps: &Deps{Actors: deps}}
	one, two := []vocab.ID{"https://p.example/bob"}, []vocab.ID{"https://p.example/bob", "https://p.example/eve"}
	for _, c := range []struct {
		name    string
		targets []vocab.ID
		digest  []byte
		want    vocab.ID
	}{
		{"a letter to one", one, nil, own},
		{"a letter to two behind one inbox", two, nil, ""},
		{"a post for followers", two, make([]byte, 32), shared},
	} {
		got, _ := s.findMovedInbox(t.Context(), &row{Delivery: user.Delivery{Inbox: old, Targets: c.targets, FollowersDigest: c.digest}})
		if got != c.want {
			t.Errorf("%s moves to %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnInboxThatMovedIsFoundAfterThreeFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
			if p.Inbox == "https://p.example/new" {
				return transport.Attempt{Status: 202}, nil
			}
			return transport.Attempt{Status: 500}, nil
		})
		b.deps.known.Store(&vocab.Actor{ID: "https://p.example/u", Inbox: "https://p.example/new"})
		place := b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		time.Sleep(time.Hour)
		synctest.Wait()
		if r := b.m.row(place); r.status != user.DeliveryDelivered || r.Inbox != "https://p.example/new" || b.peers.count("p.example") != 4 {
			t.Errorf("%s at %s after %d attempts, want delivered at the new inbox by the fourth", r.status, r.Inbox, b.peers.count("p.example"))
		}
	})
}
