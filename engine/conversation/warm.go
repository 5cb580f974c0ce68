package conversation

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits of a warm-up.
const (
	maxWarmed = 1000            // conversations, and databases that are asked for them
	warmTime  = 2 * time.Second // limit for the query in one database, with the wait for a connection
)

// Active lists the users who use this server.
type Active interface {
	ListByUse(ctx context.Context, n int) ([]vocab.Username, error)
}

// Warmer makes conversations known to a registry that has just started. It needs no goroutine for
// them, because a conversation without work has none.
type Warmer struct {
	Registry *Registry
	Store    Store // should give way to requests and deliveries, because they do not need what it reads
	Users    Active
	Log      *slog.Logger
}

// warmed is a conversation that a database told of.
type warmed struct {
	user.BusyConversation
	host vocab.Username
}

// WarmUp makes the busiest conversations live, those whose last change is the newest. It asks the
// databases of the users who were here last, one after another, with one query each, and leaves
// out a database that does not answer. If ctx ends, nothing becomes live. Everything that it reads
// is only a hint, and like other conversations one that is not asked for ends soon.
func (w Warmer) WarmUp(ctx context.Context) {
	users, err := w.Users.ListByUse(ctx, maxWarmed)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.WarnContext(ctx, "conversations not read ahead", "err", err)
		}
		return
	}
	var all []warmed
	failed := 0
	for _, u := range users {
		found, err := w.listBusiest(ctx, u, all)
		if ctx.Err() != nil {
			return // the engine is stopping
		}
		if err != nil {
			if failed++; failed == 1 {
				w.Log.WarnContext(ctx, "conversations of a user not read ahead", "user", u, "err", err)
			}
			continue
		}
		all = addBusiest(all, u, found)
	}
	w.Log.DebugContext(ctx, "conversations read ahead", "conversations", w.keep(all), "users", len(users), "failed", failed)
}

// listBusiest returns the conversations of a user that are among the busiest. The parameter all
// has the busiest of the users before.
func (w Warmer) listBusiest(ctx context.Context, u vocab.Username, all []warmed) (found []user.BusyConversation, err error) {
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	var after time.Time
	if len(all) == maxWarmed {
		after = all[maxWarmed-1].At
	}
	err = w.Store.Look(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		found, err = tx.Hosted.ListBusiest(ctx, after, maxWarmed)
		return err
	})
	return found, err
}

// addBusiest returns the busiest conversations of all and those found in the database of a host,
// the busiest first.
func addBusiest(all []warmed, host vocab.Username, found []user.BusyConversation) []warmed {
	for _, c := range found {
		all = append(all, warmed{c, host})
	}
	slices.SortStableFunc(all, func(a, b warmed) int { return b.At.Compare(a.At) })
	return all[:min(len(all), maxWarmed)]
}

// keep makes conversations live, and returns how many. It leaves those alone that are live
// already, because requests have told more of them.
func (w Warmer) keep(all []warmed) (kept int) {
	r := w.Registry
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0
	}
	now := r.Now()
	for _, found := range all {
		at := Place{Host: found.host, ID: found.ID}
		if r.live[at] != nil || len(r.live) >= maxLive {
			continue
		}
		c := r.start(at)
		c.usedAt = now
		c.epoch.Store(found.Epoch)
		c.hosted.Store(true)
		kept++
	}
	return kept
}
