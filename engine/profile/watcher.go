// Package profile tells others of changes in users' profiles, whoever made them: it watches the
// users' files.
package profile

import (
	"bytes"
	"context"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// LookEvery is how often a watcher is to look around.
const LookEvery = 2 * time.Second

const (
	restTime  = 5 * time.Second // of a file: whoever edits by hand saves often
	againTime = time.Minute     // until others are told of a profile that they could not be told of
	maxSeen   = 500             // users whose profiles are compared in a look
	maxTold   = 20              // users of whose profiles others are told in a look
)

// Files are the users' files.
type Files interface {
	Stamps() (map[vocab.Username]registry.Stamp, error)
	// Problem looks at the file, and returns why it cannot be used.
	Problem(u vocab.Username) error
}

// Users are the users, with the profiles of which others were told.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
	ToldProfiles(ctx context.Context, some []vocab.Username) ([]instance.ToldProfile, error)
	SetToldProfile(ctx context.Context, u vocab.Username, digest []byte) error
}

// Actors describe the users to others.
type Actors interface {
	ProfileDigest(u vocab.Username) []byte
}

// Teller tells others of a user's profile.
type Teller interface {
	TellProfile(ctx context.Context, u vocab.Username) error
}

// Deps is what a watcher works with.
type Deps struct {
	Files  Files
	Users  Users
	Actors Actors
	Teller Teller
	Log    *slog.Logger
	Now    func() time.Time
}

// Watcher tells others of every change in a profile, once it has rested. The database keeps of
// which profile they were told, so a change made while nothing served is told after the start.
type Watcher struct {
	Deps
	stamps map[vocab.Username]registry.Stamp // of the last look; nil before the first
	due    map[vocab.Username]time.Time      // when the profile is compared with that which was told
}

// NewWatcher returns a watcher. It is used by one goroutine.
func NewWatcher(d Deps) *Watcher { return &Watcher{Deps: d, due: map[vocab.Username]time.Time{}} }

// LookAround is one look at all files.
func (w *Watcher) LookAround(ctx context.Context) {
	if err := w.noteChanges(ctx); err != nil {
		w.Log.WarnContext(ctx, "profiles not watched", "err", err)
		return
	}
	if err := w.tellDue(ctx); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "changed profiles not told", "err", err)
	}
}

// noteChanges notes whose files are not as they were. At the first look every user's is compared,
// also of those without a file.
func (w *Watcher) noteChanges(ctx context.Context) error {
	now := w.Now()
	stamps, err := w.Files.Stamps()
	if err != nil {
		return err
	}
	if w.stamps == nil {
		users, err := w.Users.All(ctx)
		if err != nil {
			return err
		}
		for _, u := range users {
			if u.State == instance.UserDeleted {
				continue
			}
			w.due[u.Name] = now
			if s, has := stamps[u.Name]; has && now.Sub(s.Modified).Abs() < restTime {
				w.due[u.Name] = now.Add(restTime)
			}
		}
		w.stamps = stamps
		return nil
	}
	for u := range w.stamps {
		if _, is := stamps[u]; !is {
			w.noteChange(u, now)
		}
	}
	for u, s := range stamps {
		if before, was := w.stamps[u]; !was || s != before {
			w.noteChange(u, now)
		}
	}
	w.stamps = stamps
	return nil
}

// noteChange lets a file rest. The look at it follows a file that is gone, which must be gone
// twice, and tells the log at once of one that cannot be used.
func (w *Watcher) noteChange(u vocab.Username, now time.Time) {
	_ = w.Files.Problem(u) // compareProfile asks again
	w.due[u] = now.Add(restTime)
}

// tellDue compares the profiles that have rested with those of which others were told.
func (w *Watcher) tellDue(ctx context.Context) error {
	now := w.Now()
	var some []vocab.Username
	for u, at := range w.due {
		if !now.Before(at) && len(some) < maxSeen {
			some = append(some, u)
		}
	}
	if len(some) == 0 {
		return nil
	}
	profiles, err := w.Users.ToldProfiles(ctx, some)
	if err != nil {
		return err
	}
	for _, u := range some {
		w.due[u] = now.Add(againTime) // for those who are not active, too
	}
	told := 0
	for _, p := range profiles {
		if told == maxTold {
			w.due[p.Name] = now
			continue
		}
		tells, err := w.compareProfile(ctx, p)
		if tells {
			told++
		}
		if err != nil {
			w.Log.WarnContext(ctx, "changed profile not told", "user", p.Name, "err", err)
			continue
		}
		delete(w.due, p.Name)
	}
	return nil
}

// compareProfile tells others of a profile unless they were told, and nobody of the first one that
// is seen. A file that cannot be used tells nothing new.
func (w *Watcher) compareProfile(ctx context.Context, p instance.ToldProfile) (tells bool, err error) {
	if w.Files.Problem(p.Name) != nil {
		return false, nil
	}
	digest := w.Actors.ProfileDigest(p.Name)
	switch {
	case p.Digest == nil:
		return false, w.Users.SetToldProfile(ctx, p.Name, digest)
	case bytes.Equal(p.Digest, digest):
		return false, nil
	}
	return true, w.Teller.TellProfile(ctx, p.Name)
}
