package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// renewEvery is how long an actor that changes too often waits until it is asked again.
const renewEvery = 20 * time.Second

// maxRenewals bounds how many actors wait to be asked again.
const maxRenewals = 10_000

// renewer brings the users' copies of actors up to date that changed more often than they are asked at once.
type renewer struct {
	inbox *Inbox
	mu    sync.Mutex
	due   map[vocab.ID]struct{}
}

func newRenewer(i *Inbox) *renewer { return &renewer{inbox: i, due: map[vocab.ID]struct{}{}} }

// add lets an actor be asked after a while.
func (r *renewer) add(id vocab.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) >= maxRenewals {
		return // it is asked when something is sent to it
	}
	r.due[id.Canonical()] = struct{}{}
	if len(r.due) == 1 {
		w := r.inbox.writers
		w.running.Add(1)
		go func() { defer w.running.Done(); r.run() }()
	}
}

// run renews until nothing is due, or the writers are closed.
func (r *renewer) run() {
	for r.inbox.writers.pause(renewEvery) {
		for _, id := range r.list() {
			ctx, cancel := context.WithTimeout(context.Background(), applyTime)
			if err := r.renew(ctx, id); err != nil {
				r.inbox.Log.InfoContext(ctx, "actor not renewed", "actor", id, "err", err)
			}
			cancel()
		}
		if r.isDone() {
			return
		}
	}
}

func (r *renewer) list() (all []vocab.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.due {
		all = append(all, id)
	}
	return all
}

func (r *renewer) isDone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.due) == 0
}

// renew asks for one actor, and writes what its server says into the databases of those who have a copy of it.
func (r *renewer) renew(ctx context.Context, id vocab.ID) error {
	i := r.inbox
	users, err := i.Store.Acquainted(ctx, id, false)
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
	r.mu.Lock()
	delete(r.due, id)
	r.mu.Unlock()
	i.Actors.Renewed(id)
	return nil
}
