package server

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// begin begins a page, and returns the function that stores it.
func begin(p *recentPages, u vocab.Username, key string) (keep func([]byte)) {
	keep, _ = p.begin(u, key)
	return keep
}

func TestAPageIsShownAgainUntilItIsOldOrChanged(t *testing.T) {
	t.Parallel()
	now := time.Unix(1771675200, 0)
	p := newRecentPages(func() time.Time { return now }, nil)
	alice, bob := username(t, "alice"), username(t, "bob")
	shown := func(u vocab.Username) string {
		page, _ := p.find(u, "outbox")
		return string(page)
	}
	begin(p, alice, "outbox")([]byte("alice's"))
	begin(p, bob, "outbox")([]byte("bob's"))
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
	p := newRecentPages(time.Now, nil)
	alice := username(t, "alice")
	keep := begin(p, alice, "outbox")
	p.committed(user.Commit{User: alice, Touched: user.Touched{Everything: true}})
	keep([]byte("old"))
	if page, found := p.find(alice, "outbox"); found {
		t.Errorf("%q is shown", page)
	}
}

// Several readers make the same page at once. The page that is ready first is kept.
func TestAPageIsKeptWhileManyMakeIt(t *testing.T) {
	t.Parallel()
	p := newRecentPages(time.Now, nil)
	alice := username(t, "alice")
	first := begin(p, alice, "outbox")
	second := begin(p, alice, "outbox")
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
	p := newRecentPages(time.Now, nil)
	alice := username(t, "alice")
	begin(p, alice, "made")([]byte("made"))
	taken := p.bytes
	begin(p, alice, "missing")(nil)
	begin(p, alice, "made")(nil)
	if page, found := p.find(alice, "made"); p.bytes != taken || !found || string(page) != "made" {
		t.Errorf("%d bytes are taken, want %d; %q is shown", p.bytes, taken, page)
	}
}

func TestRecentPagesAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1771675200, 0)
	p := newRecentPages(func() time.Time { return now }, nil)
	for n := range 100_000 { // invented cursors
		p.begin(username(t, "alice"), fmt.Sprint("outbox", n))
	}
	if len(p.users[username(t, "alice")]) > maxRecent/recentRoom {
		t.Errorf("%d pages under way, want at most %d", len(p.users[username(t, "alice")]), maxRecent/recentRoom)
	}
	now = now.Add(2 * recentTime)
	body := []byte(strings.Repeat("x", 1<<20))
	for n := range 100 {
		begin(p, username(t, fmt.Sprint("user", n)), "outbox")(body)
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

// Requests for one page at the same time make it once. A request whose page could not be made, such
// as one that was given up, keeps nobody from the page.
func TestRequestsForAPageAtOnceMakeItOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, alice := newRecentPages(time.Now, nil), username(t, "alice")
		_, keep := p.obtain(t.Context(), alice, "outbox")
		var others sync.WaitGroup
		var shown, made atomic.Int32
		for range 50 {
			others.Go(func() {
				body, keep := p.obtain(t.Context(), alice, "outbox")
				if keep != nil {
					made.Add(1)
					keep([]byte("again"))
				} else if string(body) == "page" {
					shown.Add(1)
				}
			})
		}
		synctest.Wait()
		keep([]byte("page"))
		others.Wait()
		if shown.Load() != 50 || made.Load() != 0 {
			t.Errorf("%d of 50 requests are shown the page, and %d make it again", shown.Load(), made.Load())
		}
	})
}

// A request that waits for a page which cannot be made tries to make it at once.
func TestAPageThatCouldNotBeMadeIsWaitedForNoLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, alice := newRecentPages(time.Now, nil), username(t, "alice")
		_, keep := p.obtain(t.Context(), alice, "outbox")
		began, tries := time.Now(), make(chan time.Duration, 3)
		for range cap(tries) {
			go func() {
				if _, keep := p.obtain(t.Context(), alice, "outbox"); keep != nil {
					tries <- time.Since(began)
				}
			}()
		}
		synctest.Wait()
		keep(nil)
		for range cap(tries) {
			if waited := <-tries; waited > 0 {
				t.Errorf("a request waited %s", waited)
			}
		}
	})
}

// A request waits for a page that another request makes only as long as a page is shown.
func TestASlowPageIsWaitedForNoLongerThanItIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, alice := newRecentPages(time.Now, nil), username(t, "alice")
		p.obtain(t.Context(), alice, "outbox")
		began := time.Now()
		if _, keep := p.obtain(t.Context(), alice, "outbox"); keep == nil || time.Since(began) != recentTime {
			t.Errorf("waited %s, want %s and then to make the page", time.Since(began), recentTime)
		}
	})
}

// A commit ends the wait for a page that was begun before it. Requests after the commit, and those
// that waited, make the page once more together.
func TestAPageFromBeforeACommitIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, alice := newRecentPages(time.Now, nil), username(t, "alice")
		_, old := p.obtain(t.Context(), alice, "outbox")
		var all sync.WaitGroup
		var made, shown atomic.Int32
		ask := func() {
			body, keep := p.obtain(t.Context(), alice, "outbox")
			if keep != nil {
				made.Add(1)
				time.Sleep(recentTime / 2) // in the clock of the test: the others wait meanwhile
				keep([]byte("new"))
				return
			}
			if string(body) == "new" {
				shown.Add(1)
			}
		}
		for range 5 {
			all.Go(ask)
		}
		synctest.Wait()
		p.committed(user.Commit{User: alice, Touched: user.Touched{Pages: user.OutboxPages}})
		for range 5 {
			all.Go(ask)
		}
		synctest.Wait()
		old([]byte("old"))
		all.Wait()
		if made.Load() != 1 || shown.Load() != 9 {
			t.Errorf("%d requests made the page, and %d were shown the new one; want 1 and 9", made.Load(), shown.Load())
		}
	})
}
