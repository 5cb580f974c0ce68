// Package wish fulfils wishes. A wish names an account that a user wants to block, mute or
// follow, and comes from a list that the user imported. Blocks and mutes are done soon. Follows
// are sent one after another, so that no server is flooded with them.
package wish

import (
	"context"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// LookEvery is the time that the caller of LookAround waits between two calls.
const LookEvery = 2 * time.Second

const maxDue = 100 // wishes that are read in one LookAround

// patience lists the waits after failed attempts that may succeed later. If the attempt after
// the last wait fails too, the wish is given up.
var patience = []time.Duration{5 * time.Minute, time.Hour, 12 * time.Hour}

// ownWait is the time that a wish waits when the user or this server is to blame (see isOwnFault).
// No number of such attempts ends the wish.
const ownWait = 5 * time.Minute

// fulfilTime is the longest time of one attempt.
const fulfilTime = 30 * time.Second

// Wishes stores the wishes of all users of the instance.
type Wishes interface {
	Due(ctx context.Context, now time.Time, most int) ([]instance.Wish, error)
	Remove(ctx context.Context, w instance.Wish) error
	Postpone(ctx context.Context, w instance.Wish, until time.Time) error
}

// Fulfiller fulfils a wish. Fulfilling the same wish again changes nothing.
type Fulfiller interface {
	FulfilWish(ctx context.Context, w instance.Wish) error
}

// Deps are the dependencies of a Watcher.
type Deps struct {
	Wishes    Wishes
	Fulfiller Fulfiller
	Log       *slog.Logger
	Now       func() time.Time
}

// Watcher fulfils wishes. A wish is removed after it was fulfilled. So if the process is killed
// before the removal, the wish is fulfilled again.
type Watcher struct{ Deps }

// NewWatcher returns a watcher, which only one goroutine may use.
func NewWatcher(d Deps) *Watcher { return &Watcher{d} }

// LookAround fulfils the wishes that are due. In one call it sends at most one follow for each
// user and at most one to each host.
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
		if err := w.settle(ctx, wish, w.fulfil(ctx, wish)); err != nil && ctx.Err() == nil {
			w.Log.WarnContext(ctx, "wish not settled", "user", wish.User, "err", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// fulfil attempts to fulfil a wish within fulfilTime, so that one wish does not delay the others
// for long.
func (w *Watcher) fulfil(ctx context.Context, wish instance.Wish) error {
	ctx, cancel := context.WithTimeout(ctx, fulfilTime)
	defer cancel()
	return w.Fulfiller.FulfilWish(ctx, wish)
}

// settle handles the result of an attempt. It removes a wish that was fulfilled or cannot be
// fulfilled, and postpones a wish if a later attempt may succeed.
func (w *Watcher) settle(ctx context.Context, wish instance.Wish, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return w.Wishes.Remove(ctx, wish)
	case isOwnFault(err):
		return w.Wishes.Postpone(ctx, wish, w.Now().Add(ownWait))
	case mayPass(err) && wish.Attempts < len(patience):
		wait := patience[wish.Attempts]
		wish.Attempts++
		return w.Wishes.Postpone(ctx, wish, w.Now().Add(wait))
	}
	w.Log.WarnContext(ctx, "wish given up", "user", wish.User, "kind", wish.Kind, "account", wish.Account, "err", err)
	return w.Wishes.Remove(ctx, wish)
}

// The fault codes for an account with too many requests waiting for its server, and for an account
// whose host the DNS does not have (docs/api.md).
const (
	codeWaiting = "too_many_waiting"
	codeNoHost  = "no_such_host"
)

// isOwnFault reports whether an attempt failed because of the user or this server, and not because
// of the account. The kind is Config when the user's configuration is not valid or has no room for
// another mute. It is Unavailable when the user's database or keys are away, or federation is
// paused. If too many requests wait for a server, that server is to blame, because it answers
// slowly.
func isOwnFault(err error) bool {
	switch fault.KindOf(err) {
	case fault.Config, fault.Unavailable:
		return fault.IsOurs(err) && fault.Of(err).Code != codeWaiting
	}
	return false
}

// mayPass reports whether a later attempt may succeed.
func mayPass(err error) bool {
	e := fault.Of(err)
	return e == nil || e.Kind == fault.Internal || fault.IsPassing(err) || e.Code == codeNoHost
}
