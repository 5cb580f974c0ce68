// Package deletion carries out the deletion of users: it tells other servers, waits until they have
// heard of it, and removes what this server holds.
package deletion

import (
	"context"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// LookEvery is how often a watcher is to look around.
const LookEvery = 2 * time.Second

const againTime = 15 * time.Second // until the next step after one that did not get on

// MostWait is how long other servers are given to hear of a deletion: as long as a Delete is
// delivered at most.
const MostWait = 30 * 24 * time.Hour

// Users are the users of the instance.
type Users interface {
	ListDeletions(ctx context.Context) ([]instance.Deletion, error)
}

// Teller tells everybody who may hold something of a user that it is gone. Told again, they hear
// nothing new.
type Teller interface {
	TellDeletion(ctx context.Context, u vocab.Username) error
}

// Holder holds what there is of users.
type Holder interface {
	// CountOwed counts the deliveries of a user that are not at an end.
	CountOwed(ctx context.Context, u vocab.Username) (int, error)
	// RemoveUser removes everything of a user but its name.
	RemoveUser(ctx context.Context, u vocab.Username) error
}

// Deps is what a watcher works with.
type Deps struct {
	Users  Users
	Teller Teller
	Holder Holder
	Log    *slog.Logger
	Now    func() time.Time
}

// Watcher carries out every deletion that was asked for. Each step may be done again, so that one
// which was killed goes on at the next start.
type Watcher struct {
	Deps
	told map[vocab.Username]bool
	due  map[vocab.Username]time.Time // of the next step
}

// NewWatcher returns a watcher. It is used by one goroutine.
func NewWatcher(d Deps) *Watcher {
	return &Watcher{Deps: d, told: map[vocab.Username]bool{}, due: map[vocab.Username]time.Time{}}
}

// LookAround takes the next step of every deletion that is due.
func (w *Watcher) LookAround(ctx context.Context) {
	all, err := w.Users.ListDeletions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.Log.WarnContext(ctx, "deletions not read", "err", err)
		}
		return
	}
	for _, d := range all {
		if w.Now().Before(w.due[d.User]) {
			continue
		}
		got, err := w.takeStep(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if !got {
			w.due[d.User] = w.Now().Add(againTime)
		}
		if err != nil {
			w.Log.WarnContext(ctx, "user not deleted yet", "user", d.User, "since", d.Since, "err", err)
		}
	}
}

// takeStep tells of a deletion, or ends it when everybody was told or had time enough, or when that
// was begun before, and reports whether it got on.
func (w *Watcher) takeStep(ctx context.Context, d instance.Deletion) (got bool, err error) {
	if !d.Removing && w.Now().Sub(d.Since) < MostWait {
		if !w.told[d.User] {
			err = w.Teller.TellDeletion(ctx, d.User)
			w.told[d.User] = err == nil
			return err == nil, err
		}
		if owed, err := w.Holder.CountOwed(ctx, d.User); err != nil || owed > 0 {
			return false, err
		}
	}
	if err := w.Holder.RemoveUser(ctx, d.User); err != nil {
		return false, err
	}
	delete(w.told, d.User)
	w.Log.InfoContext(ctx, "user deleted", "user", d.User, "asked_for", d.Since)
	return true, nil
}
