// Package deletion carries out the deletion of users. It announces each deletion to other
// servers, waits until the announcements are delivered, and removes the user's data.
package deletion

import (
	"context"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// LookEvery is the interval at which LookAround should be called.
const LookEvery = 2 * time.Second

const againTime = 15 * time.Second // the time before a step that made no progress is tried again

// removeTime limits the time of one removal, so that one user's database does not hold up the
// deletions of other users. The removal of a large database takes long.
const removeTime = 2 * time.Minute

// MostWait is the longest time that a deletion waits for its deliveries to other servers. A Delete
// is retried for the same time.
const MostWait = 30 * 24 * time.Hour

// Users are the users of the instance.
type Users interface {
	ListDeletions(ctx context.Context) ([]instance.Deletion, error)
}

// Teller announces the deletion of a user to all servers that may have data of the user. A
// repeated call has no effect on servers that were told before.
type Teller interface {
	TellDeletion(ctx context.Context, u vocab.Username) error
}

// Holder holds the data of users.
type Holder interface {
	// CountOwed counts the deliveries of a user that have neither succeeded nor been given up.
	CountOwed(ctx context.Context, u vocab.Username) (int, error)
	// RemoveUser removes everything of a user except the name.
	RemoveUser(ctx context.Context, u vocab.Username) error
}

// Deps are the dependencies of a watcher.
type Deps struct {
	Users  Users
	Teller Teller
	Holder Holder
	Log    *slog.Logger
	Now    func() time.Time
}

// Watcher carries out every deletion that was begun. Each step may be repeated, so a deletion
// goes on after a restart, even if the process was killed during a step.
type Watcher struct {
	Deps
	told map[vocab.Username]bool
	due  map[vocab.Username]time.Time // when the next step may be taken
}

// NewWatcher returns a watcher. Only one goroutine may use it.
func NewWatcher(d Deps) *Watcher {
	return &Watcher{Deps: d, told: map[vocab.Username]bool{}, due: map[vocab.Username]time.Time{}}
}

// LookAround takes the next step of every deletion, unless the last step made no progress and
// againTime has not passed since.
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

// takeStep takes the next step of a deletion. The first step tells other servers. The second step
// removes the user when no delivery is owed any more. If MostWait has passed, or an earlier call
// has begun the removal, takeStep removes the user at once. The result got is true if a step was
// completed.
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
	within, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	if err := w.Holder.RemoveUser(within, d.User); err != nil {
		return false, err
	}
	delete(w.told, d.User)
	delete(w.due, d.User)
	w.Log.InfoContext(ctx, "user deleted", "user", d.User, "asked_for", d.Since)
	return true, nil
}
