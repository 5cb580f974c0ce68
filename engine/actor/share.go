package actor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
	"golang.org/x/sync/singleflight"
)

const (
	// A failed fetch is not tried again for firstPause. Each further failure doubles the pause, up
	// to lastPause.
	firstPause = time.Minute
	lastPause  = time.Hour

	// flightTime limits the time of one fetch with all its requests. Each request also has a
	// limit of its own.
	flightTime = time.Minute
)

// flights makes each fetch once for all callers that ask for it at the same time, and remembers
// failures.
type flights struct {
	now      func() time.Time
	group    singleflight.Group
	queue    queue
	failures *lru[string, failure]
}

// queue counts the requests that wait for all hosts, and for the hosts of each registrable domain.
// It limits both numbers, so that a peer that never answers cannot hold up all requests.
type queue struct {
	all *policy.Pool

	mu    sync.Mutex
	hosts map[string]*policy.Pool // by registrable domain, so that wildcard DNS gains nothing
}

func newQueue() queue {
	return queue{all: policy.KeyWaiters.NewPool(), hosts: map[string]*policy.Pool{}}
}

// enterQueue takes a place in the queue for host, on behalf of the payer of ctx. The function
// leave gives the place back. The fault is Unavailable when too many requests wait.
func (q *queue) enterQueue(ctx context.Context, host string) (leave func(), err error) {
	domain, payer := policy.RegistrableDomain(host), policy.PayerOf(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.hosts[domain]
	if at == nil {
		at = policy.HostWaiters.NewPool()
	}
	if !q.all.Take(payer, 1) {
		return nil, errWaiting
	}
	if !at.Take(payer, 1) {
		q.all.Give(payer, 1)
		return nil, errWaiting
	}
	q.hosts[domain] = at
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.all.Give(payer, 1)
		if at.Give(payer, 1); at.Used() == 0 {
			delete(q.hosts, domain)
		}
	}, nil
}

var errWaiting = fault.New(fault.Unavailable, "too many requests wait for that server").WithCode("too_many_waiting").After(firstPause)

// waitKey is the context key of the function to call before waiting.
type waitKey struct{}

// BeforeWaiting returns a copy of ctx. A fetch with that copy calls the function do before it
// waits for another server.
func BeforeWaiting(ctx context.Context, do func()) context.Context {
	return context.WithValue(ctx, waitKey{}, do)
}

// beginWaiting calls the function that BeforeWaiting put into ctx, if there is one.
func beginWaiting(ctx context.Context) {
	if do, _ := ctx.Value(waitKey{}).(func()); do != nil {
		do()
	}
}

// failure is the error of a failed fetch, with the time until which the fetch is not tried again.
type failure struct {
	err   error
	pause time.Duration
	until time.Time
}

// shareFlight calls the function work, which fetches id, once for all callers that ask for it at
// the same time. A failure that the peer caused is remembered for a while, and returned to later
// callers. Each caller takes a place in the queue of the peer's domain.
func shareFlight[T any](ctx context.Context, f *flights, what string, id vocab.ID, work func(context.Context) (T, error)) (T, error) {
	var none T
	name := what + " " + string(id.Canonical())
	if err := f.recentFailure(name); err != nil {
		return none, err
	}
	leave, err := f.queue.enterQueue(ctx, id.Host())
	if err != nil {
		return none, err
	}
	defer leave()
	beginWaiting(ctx)
	flight := f.group.DoChan(name, func() (any, error) {
		if err := f.recentFailure(name); err != nil { // another caller's try failed meanwhile
			return none, err
		}
		// The first caller may give up while others still wait. That does not end the
		// work.
		ctx, cancel := context.WithTimeout(BeforeWaiting(context.WithoutCancel(ctx), nil), flightTime)
		defer cancel()
		v, err := recoverWork(ctx, work)
		f.noteTry(name, err)
		return v, err
	})
	select {
	case done := <-flight:
		v, _ := done.Val.(T)
		return v, done.Err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return none, fault.Wrap(fault.Busy, "the request was given up", ctx.Err())
		}
		return none, fault.Wrap(fault.Unavailable, "the peer did not answer in time", ctx.Err())
	}
}

// recoverWork calls the function work and turns a panic into an error. Nothing else recovers a
// panic here, and data from one peer must not end the process.
func recoverWork[T any](ctx context.Context, work func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return work(ctx)
}

// recentFailure returns the last failure of name if it is too early for another try, and nil
// otherwise.
func (f *flights) recentFailure(name string) error {
	last, ok := f.failures.get(name)
	if !ok || !f.now().Before(last.until) {
		return nil
	}
	return fmt.Errorf("not tried again yet: %w", last.err)
}

// noteTry remembers how a try ended.
func (f *flights) noteTry(name string, err error) {
	if err == nil {
		f.failures.drop(name)
		return
	}
	if !isPeersFault(err) {
		return
	}
	last, _ := f.failures.get(name)
	pause := min(max(2*last.pause, firstPause), lastPause)
	f.failures.put(name, failure{err, pause, f.now().Add(pause)})
}

// isPeersFault reports whether the peer caused an error, rather than this server, a budget or the
// operator's block.
func isPeersFault(err error) bool {
	return !fault.IsOurs(err) && fault.KindOf(err) != fault.RateLimited && !policy.IsRefusal(err)
}

// refuseSpent returns the refusal of a fetch whose budget is used up, or nil if ok is true.
func refuseSpent(ok bool, after time.Duration) error {
	if ok {
		return nil
	}
	return fault.New(fault.RateLimited, "too much of that domain was asked for").WithCode("key_fetch_rate").After(max(after, time.Second))
}
