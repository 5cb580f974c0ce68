package inbox

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	renewEvery  = 20 * time.Second // how long an actor that changes too often waits until it is fetched again
	renewTime   = 10 * time.Second // how long, in one round, new fetches from one domain are started
	maxRenewing = 8                // domains that are fetched from at the same time
)

// renewer fetches actors that have changed, if their budget did not allow an immediate fetch or
// their server did not answer it, and updates the users' copies of them. Each domain has a queue
// of its own and a limited time in each round, so that a domain that does not answer delays the
// others only a little.
type renewer struct {
	inbox *Inbox
	room  *policy.Pool

	mu      sync.Mutex
	lines   map[string][]vocab.ID // by registrable domain, in the order in which the actors are fetched
	waiting map[vocab.ID]bool     // all actors that are in a queue or being fetched
	running bool
}

func newRenewer(i *Inbox) *renewer {
	return &renewer{inbox: i, room: policy.Renewals.NewPool(), lines: map[string][]vocab.ID{}, waiting: map[vocab.ID]bool{}}
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
		r.inbox.beside.Go(r.run)
	}
}

// run runs a round every renewEvery, until no actor waits or the inbox closes.
func (r *renewer) run() {
	for r.inbox.beside.Pause(renewEvery) {
		r.renewAll()
		if r.endRun() {
			return
		}
	}
}

// endRun ends the run if no actor waits, and reports whether it did.
func (r *renewer) endRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.waiting) > 0
	return !r.running
}

// renewAll runs one round, in which each domain gets some time for its actors.
func (r *renewer) renewAll() {
	var round errgroup.Group
	round.SetLimit(maxRenewing)
	for domain, n := range r.countLines() {
		round.Go(func() error { r.renewLine(domain, n); return nil })
	}
	_ = round.Wait() // no error, because renewLine returns none
}

func (r *renewer) countLines() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make(map[string]int, len(r.lines))
	for domain, line := range r.lines {
		counts[domain] = len(line)
	}
	return counts
}

// renewLine renews the first n actors of a domain's queue. It starts no fetch after renewTime.
func (r *renewer) renewLine(domain string, n int) {
	i := r.inbox
	until := i.Now().Add(renewTime)
	for ; n > 0 && i.Now().Before(until) && i.beside.Pause(0); n-- {
		id := r.next(domain)
		ctx, cancel := context.WithTimeout(i.beside.Context(), askTime)
		err := r.renew(ctx, id)
		cancel()
		if err != nil && i.beside.Context().Err() == nil {
			i.Log.Info("actor not renewed", "actor", id, "err", err)
		}
		r.finish(domain, id, err == nil || unansweredFault(err, "its server does not answer") == nil)
	}
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

// finish forgets an actor if done is true. Otherwise it puts the actor at the end of its
// domain's queue.
func (r *renewer) finish(domain string, id vocab.ID, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if done {
		delete(r.waiting, id)
		r.room.Give(domain, 1)
	} else {
		r.lines[domain] = append(r.lines[domain], id)
	}
}

// renew fetches one actor, and updates the copies of it in the users' databases.
func (r *renewer) renew(ctx context.Context, id vocab.ID) error {
	i := r.inbox
	users, err := i.Store.Instance.Acquaintances.Users(ctx, id, false)
	if err != nil {
		return err
	}
	var a *vocab.Actor
	if len(users) > 0 {
		if a, err = i.Actors.Resolve(ctx, id); err != nil {
			return err
		}
	}
	for _, u := range users {
		err := i.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error { return tx.Actors.Renew(ctx, a, i.Now()) })
		if err != nil {
			return err
		}
	}
	i.Actors.Renewed(id)
	return nil
}
