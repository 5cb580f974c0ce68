package actor

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// byStranger returns the context of work that is charged to a stranger's address.
func byStranger() context.Context {
	return policy.PaidByAddress(context.Background(), netip.MustParsePrefix("192.0.2.1/32"))
}

// stored returns the document of an actor in the store. It returns "" if the store has none.
func (n *node) stored(t *testing.T, id vocab.ID) string {
	t.Helper()
	row, err := n.store.Find(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if row == nil {
		return ""
	}
	return string(row.Actor.Raw)
}

// A stranger makes this server fetch an actor that no user here knows. The actor stays in memory
// only, until Keep stores it.
func TestActorsOfNobodyAreInMemoryAlone(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	const path = "/users/bob"
	large := with(p.person(t, "bob", 0), vocab.Doc{"attachment": strings.Repeat("x", 200<<10)})
	p.show(path, large)
	id := p.id(path)
	bob, err := n.Resolve(byStranger(), id)
	if err != nil {
		t.Fatal(err)
	}
	if n.stored(t, id) != "" {
		t.Error("an actor that a stranger named is stored")
	}
	if len(bob.Raw) > 16<<10 || bob.Keys[0].PEM == "" {
		t.Errorf("in memory it has %d bytes and %d keys", len(bob.Raw), len(bob.Keys))
	}
	n.clock.pass(2 * testTTL)
	if _, err := n.Resolve(byStranger(), id); err != nil || n.stored(t, id) != "" {
		t.Errorf("asked for again: %v, stored %q", err, n.stored(t, id))
	}

	paid, full := 0, fault.New(fault.RateLimited, "full")
	if err := n.Keep(byStranger(), bob, func(int) error { return full }); !errors.Is(err, full) || n.stored(t, id) != "" {
		t.Errorf("Keep beyond the budget = %v, stored %q", err, n.stored(t, id))
	}
	for range 3 {
		if err := n.Keep(byStranger(), bob, func(bytes int) error { paid += bytes; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if kept := n.stored(t, id); paid != len(bob.Raw) || kept == "" || len(kept) > 16<<10 {
		t.Errorf("paid for %d bytes, stored are %d; want those of one document", paid, len(kept))
	}

	p.show(path, with(large, vocab.Doc{"name": "renamed"}))
	n.clock.pass(2 * testTTL)
	if _, err := n.Resolve(byStranger(), id); err != nil || !strings.Contains(n.stored(t, id), "renamed") {
		t.Errorf("what is stored is not renewed: %v, %s", err, n.stored(t, id))
	}
}

// When a user of this server looks up an actor, the actor is stored. This holds even if the actor
// is already in memory because of a stranger.
func TestActorsThatUsersAskForAreStored(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	id := p.id("/users/bob")
	for _, ctx := range []context.Context{byStranger(), context.Background()} {
		if _, err := n.Resolve(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if n.stored(t, id) == "" || p.asked("/users/bob") != 1 {
		t.Errorf("stored %q, asked %d times; want it stored, and asked for once", n.stored(t, id), p.asked("/users/bob"))
	}
	n = n.restarted(t)
	if _, err := n.Resolve(byStranger(), id); err != nil || p.asked("/users/bob") != 1 {
		t.Errorf("after a restart: %v, asked %d times", err, p.asked("/users/bob"))
	}
}

// An actor was not used for a long time, and is forgotten. When it is used again, it is stored
// again.
func TestAForgottenActorIsStoredAgain(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	id := p.id("/users/bob")
	bob, err := n.Resolve(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	n.clock.pass(40 * 24 * time.Hour)
	store := n.store.(interface {
		Prune(ctx context.Context, now time.Time, dryRun bool) (int, error)
	})
	if forgotten, err := store.Prune(t.Context(), n.clock.now(), false); err != nil || forgotten != 1 {
		t.Fatalf("PruneRemoteActors = %d, %v", forgotten, err)
	}
	if err := n.Keep(byStranger(), bob, func(int) error { return nil }); err != nil || n.stored(t, id) == "" {
		t.Errorf("Keep = %v, stored %q", err, n.stored(t, id))
	}
}

func TestAnActorThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	keys := []any{}
	for _, name := range []string{"1", "2", "3", "4", "5", "6"} {
		keys = append(keys, vocab.Doc{"id": p.URL + "/users/bob#" + name, "owner": p.URL + "/users/bob", "publicKeyPem": strings.Repeat("x", 4000)})
	}
	p.show("/users/bob", with(p.person(t, "bob", 0), vocab.Doc{"publicKey": keys}))
	_, err := n.Resolve(byStranger(), p.id("/users/bob"))
	checkKind(t, "Resolve", err, fault.Protocol)
}
