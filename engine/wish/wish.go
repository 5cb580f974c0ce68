// Package wish sees to the accounts that imports want users to block, mute and follow: to blocks
// and mutes soon, to follows one after another, so that no server is flooded with them.
package wish

import (
	"context"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// LookEvery is how often a watcher is to look around.
const LookEvery = 2 * time.Second

const maxDue = 100 // wishes that are read in a look

// patience is how long a wish waits after each attempt that failed for a while; after the last it
// is given up.
var patience = []time.Duration{5 * time.Minute, time.Hour, 12 * time.Hour}

// Wishes are those of the users of the instance.
type Wishes interface {
	Due(ctx context.Context, now time.Time, most int) ([]instance.Wish, error)
	Remove(ctx context.Context, w instance.Wish) error
	Postpone(ctx context.Context, w instance.Wish, until time.Time) error
}

// Fulfiller does what a wish asks for. Done again, it changes nothing.
type Fulfiller interface {
	FulfilWish(ctx context.Context, w instance.Wish) error
}

// Deps is what a watcher works with.
type Deps struct {
	Wishes    Wishes
	Fulfiller Fulfiller
	Log       *slog.Logger
	Now       func() time.Time
}

// Watcher sees to wishes. A wish goes when it is fulfilled: one that a killed process was at is
// fulfilled again.
type Watcher struct{ Deps }

// NewWatcher returns a watcher. It is used by one goroutine.
func NewWatcher(d Deps) *Watcher { return &Watcher{d} }

// LookAround sees to what is due: in a look one follow of each user, and one at each host.
func (w *Watcher) LookAround(ctx context.Context) {
	all, err := w.Wishes.Due(ctx, w.Now(), maxDue)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.WarnContext(ctx, "wishes not read", "err", err)
		}
		return
	}
	asked := map[string]bool{}
	for _, wish := range all {
		if wish.Kind == instance.WishFollow && asked[wish.Host] {
			continue
		}
		asked[wish.Host] = asked[wish.Host] || wish.Kind == instance.WishFollow
		if err := w.settle(ctx, wish, w.Fulfiller.FulfilWish(ctx, wish)); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "wish not settled", "user", wish.User, "err", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// settle removes a wish that is fulfilled, or cannot be, and has another one wait.
func (w *Watcher) settle(ctx context.Context, wish instance.Wish, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return w.Wishes.Remove(ctx, wish)
	case mayPass(err) && wish.Attempts < len(patience):
		return w.Wishes.Postpone(ctx, wish, w.Now().Add(patience[wish.Attempts]))
	}
	w.Log.WarnContext(ctx, "wish given up", "user", wish.User, "kind", wish.Kind, "account", wish.Account, "err", err)
	return w.Wishes.Remove(ctx, wish)
}

// mayPass reports whether it may go better later.
func mayPass(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited, fault.NoHost, fault.Internal:
		return true
	}
	return false
}
