package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

func username(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAPageIsShownAgainUntilItIsOldOrChanged(t *testing.T) {
	t.Parallel()
	now := time.Unix(1771675200, 0)
	p := newRecentPages(func() time.Time { return now })
	alice, bob := username(t, "alice"), username(t, "bob")
	shown := func(u vocab.Username) string {
		page, _ := p.find(u, "outbox")
		return string(page)
	}
	p.begin(alice, "outbox")([]byte("alice's"))
	p.begin(bob, "outbox")([]byte("bob's"))
	now = now.Add(recentTime)
	if shown(alice) != "alice's" || shown(bob) != "bob's" {
		t.Errorf("shown: %q and %q", shown(alice), shown(bob))
	}
	p.committed(user.Commit{User: alice, Touched: user.Touched{Pages: user.OutboxPages}})
	if shown(alice) != "" || shown(bob) != "bob's" {
		t.Errorf("after a post of alice's: %q and %q, want nothing and bob's", shown(alice), shown(bob))
	}
	now = now.Add(1)
	if shown(bob) != "" {
		t.Errorf("%q is shown longer than %s", shown(bob), recentTime)
	}
}

// A page is not kept if its user writes while the page is made, because the page may be out of
// date.
func TestAPageThatWasReadDuringAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	p := newRecentPages(time.Now)
	alice := username(t, "alice")
	keep := p.begin(alice, "outbox")
	p.committed(user.Commit{User: alice, Touched: user.Touched{Everything: true}})
	keep([]byte("old"))
	if page, found := p.find(alice, "outbox"); found {
		t.Errorf("%q is shown", page)
	}
}

// Several readers make the same page at once. The page that is ready first is kept.
func TestAPageIsKeptWhileManyMakeIt(t *testing.T) {
	t.Parallel()
	p := newRecentPages(time.Now)
	alice := username(t, "alice")
	first := p.begin(alice, "outbox")
	second := p.begin(alice, "outbox")
	first([]byte("first"))
	p.begin(alice, "outbox")
	second([]byte("second"))
	if page, _ := p.find(alice, "outbox"); string(page) != "first" {
		t.Errorf("%q is shown, want the first", page)
	}
}

// A page that cannot be made uses no room, for example a page at an invented address.
func TestAPageThatCouldNotBeMadeTakesNoRoom(t *testing.T) {
	t.Parallel()
	p := newRecentPages(time.Now)
	alice := username(t, "alice")
	p.begin(alice, "made")([]byte("made"))
	taken := p.bytes
	p.begin(alice, "missing")
	p.abandon(alice, "missing")
	p.abandon(alice, "made")
	if page, found := p.find(alice, "made"); p.bytes != taken || !found || string(page) != "made" {
		t.Errorf("%d bytes are taken, want %d; %q is shown", p.bytes, taken, page)
	}
}

func TestRecentPagesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1771675200, 0)
	p := newRecentPages(func() time.Time { return now })
	for n := range 100_000 { // invented cursors
		p.begin(username(t, "alice"), fmt.Sprint("outbox", n))
	}
	if len(p.users[username(t, "alice")]) > maxRecent/recentRoom {
		t.Errorf("%d pages under way, want at most %d", len(p.users[username(t, "alice")]), maxRecent/recentRoom)
	}
	now = now.Add(2 * recentTime)
	body := []byte(strings.Repeat("x", 1<<20))
	for n := range 100 {
		p.begin(username(t, fmt.Sprint("user", n)), "outbox")(body)
		if n == 50 {
			now = now.Add(2 * recentTime)
		}
		if p.bytes > maxRecent {
			t.Fatalf("%d bytes are kept, want at most %d", p.bytes, maxRecent)
		}
	}
	if _, found := p.find(username(t, "user60"), "outbox"); !found {
		t.Error("old pages leave no room for new ones")
	}
}
