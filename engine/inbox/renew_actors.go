package inbox

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	renewEvery  = 20 * time.Second // how long an actor that changes too often waits until it is asked again
	renewTime   = 10 * time.Second // of a round, in which actors of one domain are begun
	maxRenewing = 8                // domains at once
)

// renewer brings the users' copies of actors up to date that changed more often than they are
// asked at once. The actors of a domain wait in a line of their own: a domain that does not
// answer holds up no other.
type renewer struct {
	inbox *Inbox
	room  *policy.Pool

	mu      sync.Mutex
	lines   map[string][]vocab.ID // by registrable domain, in the order in which they are asked
	waiting map[vocab.ID]bool     // all that are in a line, or being asked
	running bool
}

func newRenewer(i *Inbox) *renewer {
	return &renewer{inbox: i, room: policy.Renewals.NewPool(), lines: map[string][]vocab.ID{}, waiting: map[vocab.ID]bool{}}
}

// add lets an actor be asked after a while.
func (r *renewer) add(id vocab.ID) {
	id = id.Canonical()
	domain := policy.RegistrableDomain(id.Host())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[id] || !r.room.Take(domain, 1) {
		return // it is asked when something is sent to it
	}
	r.waiting[id] = true
	r.lines[domain] = append(r.lines[domain], id)
	if !r.running {
		r.running = true
		r.inbox.beside.Go(r.run)
	}
}

// run renews until nothing is due, or the inbox is closed.
func (r *renewer) run() {
	for r.inbox.beside.Pause(renewEvery) {
		r.renewAll()
		if r.endRun() {
			return
		}
	}
}

// endRun ends the run when no actor waits, and reports whether it did.
func (r *renewer) endRun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.waiting) > 0
	return !r.running
}

// renewAll is one round: each domain has some time for its actors.
func (r *renewer) renewAll() {
	var round errgroup.Group
	round.SetLimit(maxRenewing)
	for domain, n := range r.countLines() {
		round.Go(func() error { r.renewLine(domain, n); return nil })
	}
	_ = round.Wait() // which no line fails
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

// renewLine renews the first n actors of a domain's line, as many as are begun in time.
func (r *renewer) renewLine(domain string, n int) {
	i := r.inbox
	until := i.Now().Add(renewTime)
	for ; n > 0 && i.Now().Before(until) && i.beside.Pause(0); n-- {
		id := r.next(domain)
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		err := r.renew(ctx, id)
		cancel()
		if err != nil {
			i.Log.Info("actor not renewed", "actor", id, "err", err)
		}
		r.finish(domain, id, err == nil || unansweredFault(err, "its server does not answer") == nil)
	}
}

// next takes the first actor out of a line.
func (r *renewer) next(domain string) vocab.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := r.lines[domain]
	if r.lines[domain] = line[1:]; len(line) == 1 {
		delete(r.lines, domain)
	}
	return line[0]
}

// finish lets go of an actor, or puts it at the end of its domain's line.
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

// renew asks for one actor, and writes what its server says into the databases of those who have
// a copy of it.
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
		err := i.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error { return tx.RenewActor(ctx, a, i.Now()) })
		if err != nil {
			return err
		}
	}
	i.Actors.Renewed(id)
	return nil
}
