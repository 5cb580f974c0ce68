// Package profile watches the users' files, and announces changes in users' profiles to others,
// no matter who made the changes.
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

// LookEvery is the interval at which LookAround should be called.
const LookEvery = 2 * time.Second

const (
	restTime  = 5 * time.Second // how long a changed file must stay unchanged before its profile is announced, because people who edit by hand save often
	againTime = time.Minute     // the wait after a failure until the next attempt
	maxSeen   = 500             // users whose profiles are compared in one look
	maxTold   = 20              // users whose profiles are announced in one look
)

// Files are the users' files.
type Files interface {
	Stamps() (map[vocab.Username]registry.Stamp, error)
	// Problem reads the file of u. It returns the reason why the file cannot be used, or nil if
	// the file can be used.
	Problem(u vocab.Username) error
}

// Users are the users, with the digests of their announced profiles.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
	ToldProfiles(ctx context.Context, some []vocab.Username) ([]instance.ToldProfile, error)
	SetToldProfile(ctx context.Context, u vocab.Username, digest []byte) error
}

// Actors computes digests of the profiles that others see.
type Actors interface {
	ProfileDigest(u vocab.Username) []byte
}

// Teller announces a user's profile to others.
type Teller interface {
	TellProfile(ctx context.Context, u vocab.Username) error
}

// Deps are the parts that a watcher works with.
type Deps struct {
	Files  Files
	Users  Users
	Actors Actors
	Teller Teller
	Log    *slog.Logger
	Now    func() time.Time
}

// Watcher announces every change in a profile, once the file has not changed for restTime. The
// database stores the digest of the announced profile, so a change made while no engine ran is
// announced after the start.
type Watcher struct {
	Deps
	stamps map[vocab.Username]registry.Stamp // of the last look; nil before the first
	due    map[vocab.Username]time.Time      // when the profile is compared with the announced one
}

// NewWatcher returns a watcher. Only one goroutine may use it.
func NewWatcher(d Deps) *Watcher { return &Watcher{Deps: d, due: map[vocab.Username]time.Time{}} }

// LookAround looks once at all files.
func (w *Watcher) LookAround(ctx context.Context) {
	if err := w.noteChanges(ctx); err != nil {
		w.Log.WarnContext(ctx, "profiles not watched", "err", err)
		return
	}
	if err := w.tellDue(ctx); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "changed profiles not told", "err", err)
	}
}

// noteChanges looks for changed files, and adds their users to w.due. At the first look it adds
// every user who is not deleted, even one without a file.
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

// noteChange makes the profile of u due after restTime. It also reads the file now, for two
// reasons. First, a file that cannot be used is then logged immediately. Second, the registry
// treats a file as absent only after two checks have found no file, and this is the first check.
func (w *Watcher) noteChange(u vocab.Username, now time.Time) {
	_ = w.Files.Problem(u) // not used, because compareProfile reads the file again
	w.due[u] = now.Add(restTime)
}

// tellDue compares the due profiles with the announced ones, and announces those that differ.
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
		// Users who are not active have no entry in profiles. So they, too, are looked at again
		// after againTime.
		w.due[u] = now.Add(againTime)
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

// compareProfile announces the profile of p.Name if it differs from the announced one. If p.Digest
// is nil, it only stores the digest of the profile. If the file cannot be used, it does nothing.
// The result tells reports whether it called the Teller.
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
