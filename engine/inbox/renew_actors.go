package inbox

import (
	"context"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	renewEvery  = 20 * time.Second // the wait before an actor that changes too often is fetched again
	renewTime   = 10 * time.Second // the time in one round in which fetches from one domain may begin
	maxRenewing = 8                // domains that are fetched from at the same time
)

// renewer fetches actors that have changed, if their budget did not allow an immediate fetch or
// their server did not answer it, and updates the users' copies of them. Each domain has a queue
// of its own and a limited time in each round, so that a domain that does not answer delays the
// others only a little. A user whose database fails is tried once in a round. Such a user does not
// delay the other users, and causes no further fetch.
type renewer struct {
	inbox *Inbox
	room  *policy.Pool

	mu      sync.Mutex
	lines   map[string][]vocab.ID         // by registrable domain, in the order in which the actors are fetched
	waiting map[vocab.ID]bool             // all actors that are in a queue or being fetched
	owed    map[vocab.ID][]vocab.Username // users whose copies of a fetched actor are still old
	failing map[vocab.Username]bool       // users whose databases have failed in this round
	running bool
}

func newRenewer(i *Inbox) *renewer {
	return &renewer{inbox: i, room: policy.Renewals.NewPool(), lines: map[string][]vocab.ID{}, waiting: map[vocab.ID]bool{}, owed: map[vocab.ID][]vocab.Username{}}
}

// add queues an actor to be fetched after a while.
func (r *renewer) add(id vocab.ID) {
	id = id.Canonical()
	domain := policy.RegistrableDomain(id.Host())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] || !r.room.Take(domain, 1) {
		// The actor is queued already. Or there is no room, and the actor is fetched when
		// something is sent to it.
		return
	}
	r.waiting[id] = true
	r.lines[domain] = append(r.lines[domain], id)
	if !r.running {
		r.running = true
		r.inbox.beside.Loop(r.run)
	}
}

// run runs a round every renewEvery, until no actor waits and no user is owed a copy, or the inbox
// closes.
func (r *renewer) run() {
	for r.inbox.beside.Pause(renewEvery) {
		r.renewAll()
		if r.endRun() {
			return
		}
	}
}

// endRun ends the run if nothing is left to do, and reports whether it did.
func (r *renewer) endRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.waiting)+len(r.owed) > 0
	return !r.running
}

// renewAll runs one round, in which each domain gets some time for its actors.
func (r *renewer) renewAll() {
	counts, owed := r.beginRound()
	var round errgroup.Group
	round.SetLimit(1 + maxRenewing)
	round.Go(func() error { r.settleOwed(owed); return nil })
	for domain, n := range counts {
		round.Go(func() error { r.renewLine(domain, n); return nil })
	}
	_ = round.Wait() // no error, because neither function returns one
}

// beginRound returns the length of each domain's queue. For each actor that is in no queue, it
// also returns the users who are owed a copy of the actor. So two goroutines never write copies of
// the same actor.
func (r *renewer) beginRound() (counts map[string]int, owed map[vocab.ID][]vocab.Username) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = map[vocab.Username]bool{}
	counts = make(map[string]int, len(r.lines))
	for domain, line := range r.lines {
		counts[domain] = len(line)
	}
	owed = maps.Clone(r.owed)
	maps.DeleteFunc(owed, func(id vocab.ID, _ []vocab.Username) bool { return r.waiting[id] })
	return counts, owed
}

// renewLine renews the first n actors of a domain's queue. It starts no fetch after renewTime.
func (r *renewer) renewLine(domain string, n int) {
	i := r.inbox
	until := i.Now().Add(renewTime)
	for ; n > 0 && i.Now().Before(until) && i.beside.Pause(0); n-- {
		r.renewNext(domain)
	}
}

// renewNext renews the first actor of a domain's queue.
func (r *renewer) renewNext(domain string) {
	i := r.inbox
	id := r.next(domain)
	defer r.giveUp(id)
	users, err := r.fetch(id)
	if err != nil && i.beside.Context().Err() == nil {
		i.Log.Info("actor not renewed", "actor", id, "err", err)
	}
	if err != nil && unansweredFault(err, "its server does not answer") != nil {
		r.putBack(domain, id)
		return
	}
	r.forget(domain, id)
	if err == nil {
		r.writeCopies(id, users)
	}
}

// giveUp ends a panic in the renewal of an actor, if it is deferred. The actor then waits no more,
// and the users' copies stay old until something else renews them.
func (r *renewer) giveUp(id vocab.ID) {
	v := recover()
	if v == nil {
		return
	}
	r.inbox.Log.Error("renewing an actor panicked", "actor", id, "err", v, "stack", string(debug.Stack()))
	r.forget(policy.RegistrableDomain(id.Host()), id)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owed, id)
}

// settleOwed writes the copies that are owed from earlier rounds, except to users who have left.
func (r *renewer) settleOwed(owed map[vocab.ID][]vocab.Username) {
	for id, users := range owed {
		r.settleActor(id, users)
	}
}

// settleActor is settleOwed for the copies of one actor.
func (r *renewer) settleActor(id vocab.ID, users []vocab.Username) {
	i := r.inbox
	defer r.giveUp(id)
	known, err := i.Store.Instance.Acquaintances.Users(i.beside.Context(), id, false)
	if err == nil {
		users = slices.DeleteFunc(users, func(u vocab.Username) bool { return !slices.Contains(known, u) })
	}
	r.writeCopies(id, users)
}

// next takes the first actor out of a domain's queue.
func (r *renewer) next(domain string) vocab.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[domain]
	if r.lines[domain] = line[1:]; len(line) == 1 {
		delete(r.lines, domain)
	}
	return line[0]
}

// putBack puts an actor at the end of its domain's queue.
func (r *renewer) putBack(domain string, id vocab.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[domain] = append(r.lines[domain], id)
}

// forget ends the waiting of an actor, if it waits. The actor may be added again from then on.
func (r *renewer) forget(domain string, id vocab.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] {
		delete(r.waiting, id)
		r.room.Give(domain, 1)
	}
}

// fetch fetches one actor, and returns the users that may have old copies of it.
func (r *renewer) fetch(id vocab.ID) ([]vocab.Username, error) {
	i := r.inbox
	ctx, cancel := context.WithTimeout(i.beside.Context(), askTime)
	defer cancel()
	users, err := i.Store.Instance.Acquaintances.Users(ctx, id, false)
	if err == nil && len(users) > 0 {
		_, err = i.Actors.Resolve(ctx, id)
	}
	return users, err
}

// writeCopies updates the users' copies of an actor, and remembers the users whose copies stay
// old.
func (r *renewer) writeCopies(id vocab.ID, users []vocab.Username) {
	i := r.inbox
	var left []vocab.Username
	for _, u := range users {
		if r.hasFailed(u) {
			left = append(left, u)
		} else if err := r.writeCopy(id, u); err != nil {
			left = append(left, u)
			r.noteFailure(u)
			i.Log.Info("copy of an actor not renewed", "actor", id, "user", u, "err", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(left) > 0 {
		r.owed[id] = left
		return
	}
	delete(r.owed, id)
	if !r.waiting[id] { // else it has changed again meanwhile
		i.Actors.Renewed(id)
	}
}

// writeCopy updates one user's copy of an actor, to what its server has last shown.
func (r *renewer) writeCopy(id vocab.ID, u vocab.Username) error {
	i := r.inbox
	ctx, cancel := context.WithTimeout(i.beside.Context(), askTime)
	defer cancel()
	a, err := i.Actors.Known(ctx, id)
	if err != nil || a == nil {
		return err
	}
	return i.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Renew(ctx, a, i.Now()) })
}

func (r *renewer) hasFailed(u vocab.Username) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing[u]
}

func (r *renewer) noteFailure(u vocab.Username) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing[u] = true
}
