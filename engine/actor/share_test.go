package actor

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

func TestOneFetchServesEverybody(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	arrived, answer := make(chan struct{}, 16), make(chan struct{})
	p.say("/users/bob", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-answer
		activity(p.person(t, "bob", 0))(w, r)
	})
	ctx, hangUp := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := n.Resolve(ctx, p.id("/users/bob"))
		gone <- err
	}()
	<-arrived
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil {
				t.Errorf("Resolve = %v", err)
			}
		})
	}
	hangUp()
	checkKind(t, "the first, who hung up", <-gone, fault.Busy)
	close(answer)
	wg.Wait()
	if got := p.asked("/users/bob"); got != 1 {
		t.Errorf("asked %d times, want once", got)
	}
}

// A peer does not answer before the deadline of a request. The failure counts as the peer's, not
// as this server's.
func TestAPeerThatOutlastsTheRequestIsTheCause(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	answer := make(chan struct{})
	p.say("/users/bob", func(w http.ResponseWriter, r *http.Request) {
		<-answer
		activity(p.person(t, "bob", 0))(w, r)
	})
	late, end := context.WithDeadline(context.Background(), time.Time{})
	defer end()
	_, err := n.Resolve(late, p.id("/users/bob"))
	checkKind(t, "Resolve", err, fault.Unavailable)
	if fault.IsOurs(err) {
		t.Errorf("Resolve = %v, which counts as this server's failure", err)
	}
	close(answer)
}

func TestOnlySoManyWait(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n, p, other := newNode(t, settings{store: forgetful{}}), newPeer(t), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	other.show("/users/eve", other.person(t, "eve", 0))
	fill := func(count int, host func(i int) string) (empty func()) {
		t.Helper()
		var all []func()
		for i := range count {
			leave, err := n.queue.enterQueue(ctx, host(i))
			if err != nil {
				t.Fatalf("waiter %d: %v", i, err)
			}
			all = append(all, leave)
		}
		return func() {
			for _, leave := range all {
				leave()
			}
		}
	}
	empty := fill(int(policy.HostWaiters.Pool), func(int) string { return p.host() })
	_, err := n.Resolve(ctx, p.id("/users/bob"))
	checkKind(t, "Resolve at a host for which as many wait as may", err, fault.Unavailable)
	_, _, err = n.Object(ctx, p.id("/notes/1"), nil)
	checkKind(t, "Object", err, fault.Unavailable)
	_, err = n.Handle(ctx, "bob@"+p.host())
	checkKind(t, "Handle", err, fault.Unavailable)
	if _, err := n.Resolve(ctx, other.id("/users/eve")); err != nil {
		t.Errorf("another host has to wait too: %v", err)
	}
	empty()
	if _, err := n.Resolve(ctx, p.id("/users/bob")); err != nil {
		t.Errorf("that too many waited is held against the peer: %v", err)
	}
	empty = fill(int(policy.KeyWaiters.Pool), func(i int) string { return fmt.Sprintf("h%d.example", i) })
	_, err = n.Resolve(ctx, p.id("/users/carol"))
	checkKind(t, "Resolve when 256 wait", err, fault.Unavailable)
	if _, err := n.Resolve(ctx, p.id("/users/bob")); err != nil {
		t.Errorf("who is known has to wait: %v", err)
	}
	empty()
	wildcard := fill(int(policy.HostWaiters.Pool), func(i int) string { return fmt.Sprintf("h%d.wild.example.com", i) })
	if _, err := n.queue.enterQueue(ctx, "another.wild.example.com"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a wildcard in the DNS buys more places: %v", err)
	}
	wildcard()
	if n.queue.all.Used() != 0 || len(n.queue.hosts) != 0 {
		t.Errorf("%d places are still taken, %v", n.queue.all.Used(), n.queue.hosts)
	}
}

func TestFetchesAreBudgeted(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}, rate: policy.Rate{PerSecond: 1.0 / 60, Burst: 5}}), newPeer(t)
	limited := 0
	for i := range 1000 { // SIG-27: 1000 random key ids on the same host
		_, err := n.ByKey(context.Background(), p.id(fmt.Sprintf("/users/u%d#main-key", i)))
		if fault.KindOf(err) == fault.RateLimited {
			limited++
			if fault.Of(err).RetryAfter <= 0 {
				t.Fatal("a limit that does not say until when")
			}
		}
	}
	if p.all() != 5 || limited != 995 {
		t.Errorf("%d requests, %d limited; want 5 and 995", p.all(), limited)
	}
	other := newPeer(t)
	other.show("/users/eve", other.person(t, "eve", 0))
	if _, err := n.Resolve(context.Background(), other.id("/users/eve")); err != nil {
		t.Errorf("another host pays for it: %v", err)
	}
	p.show("/users/u999", p.person(t, "u999", 0))
	n.clock.pass(time.Minute)
	if _, err := n.ByKey(context.Background(), p.id("/users/u999#main-key")); err != nil {
		t.Errorf("a limit of ours is held against the peer: %v", err)
	}
}

func TestABlockDuringAFetchIsNotHeldAgainstThePeer(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
	p.say("/users/bob", func(w http.ResponseWriter, r *http.Request) {
		n.policy.Blocked = []string{"127.0.0.1"}
		http.Redirect(w, r, "/bob", http.StatusFound)
	})
	_, err := n.Resolve(t.Context(), p.id("/users/bob"))
	checkKind(t, "Resolve while the host is blocked", err, fault.Forbidden)
	p.show("/users/bob", p.person(t, "bob", 0))
	n.policy.Blocked = nil
	if _, err := n.Resolve(t.Context(), p.id("/users/bob")); err != nil {
		t.Errorf("Resolve when the block is lifted = %v", err)
	}
}
