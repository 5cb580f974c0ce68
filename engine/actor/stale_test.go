package actor

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAnActorThatSaysItChangedIsAskedAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p := newNode(t, settings{}), newPeer(t)
	const path = "/users/bob"
	is := func(what string, ask func() (*vocab.Actor, error), name string, asked int) {
		t.Helper()
		if a, err := ask(); err != nil || a.Name != name {
			t.Errorf("%s: actor %+v, %v, want %q", what, a, err, name)
		}
		if got := p.asked(path); got != asked {
			t.Errorf("%s: the peer was asked %d times, want %d", what, got, asked)
		}
	}
	changed := func(came time.Time) func() (*vocab.Actor, error) {
		return func() (*vocab.Actor, error) { return n.Changed(ctx, p.id(path), came, true) }
	}
	show := func(name string) { p.show(path, with(p.person(t, "bob", 0), vocab.Doc{"name": name})) }

	show("first")
	is("an actor nobody knew", changed(n.clock.now()), "first", 1)
	show("second")
	is("a copy from before", changed(n.clock.now()), "second", 2)
	is("a copy from afterwards", changed(n.clock.now().Add(-time.Second)), "second", 2)

	p.status(path, http.StatusServiceUnavailable)
	is("while its server is down, the copy", changed(n.clock.now()), "second", 3)
	if !n.IsStale(p.id(path)) {
		t.Error("the copy does not count as stale")
	}
	show("third")
	is("as it is", func() (*vocab.Actor, error) { return n.Current(ctx, p.id(path)) }, "second", 3)
}
