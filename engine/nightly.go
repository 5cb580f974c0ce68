package engine

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

const (
	nightHour = 3               // local time
	spread    = 2 * time.Hour   // the window in which instances begin, each at its own time
	fresh     = 12 * time.Hour  // users pruned within this time are not pruned again this night
	nap       = 5 * time.Minute // the longest single wait; after it the clock is read again, because machines sleep and clocks are changed
)

// pruneNightly prunes once a night until ctx ends. If pruning is missed or interrupted in one
// night, the users that were left out are pruned first in the next night, because pruning begins
// with the users who have waited longest.
func (e *Engine) pruneNightly(ctx context.Context) {
	// everyNight calls work once a night until ctx ends.
	everyNight(ctx, e.in.Now, e.in.Config.PublicURL, e.pruneTonight)
}

// everyNight calls the function work once a night until ctx ends, at the time of night that
// belongs to the instance.
func everyNight(ctx context.Context, now func() time.Time, instance string, work func(context.Context)) {
	for at := nextNight(now(), instance); ; {
		t := time.NewTimer(min(at.Sub(now()), nap))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		clock := now()
		if !clock.Before(at) {
			work(ctx)
			clock = now()
		}
		at = nextNight(clock, instance) // earlier than before if the clock was set back
	}
}

// nextNight returns the first time after now at which the nightly work of the instance begins.
func nextNight(now time.Time, instance string) time.Time {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance)) // a hash never fails
	after := time.Duration(h.Sum32()) % spread
	for day := now.Day(); ; day++ {
		if at := time.Date(now.Year(), now.Month(), day, nightHour, 0, 0, 0, now.Location()).Add(after); at.After(now) {
			return at
		}
	}
}

// pruneTonight prunes all users who were not pruned within the time fresh, and logs the result.
func (e *Engine) pruneTonight(ctx context.Context) {
	r, err := admin.New(e.in).Databases.Prune(ctx, admin.PruneOptions{NotSince: e.in.Now().Add(-fresh)})
	switch {
	case ctx.Err() != nil:
		return // the engine stops
	case fault.KindOf(err) == fault.Busy:
		e.in.Log.InfoContext(ctx, "pruning left to another process", "err", err)
	case err != nil:
		e.in.Log.ErrorContext(ctx, "pruning did not begin", "err", err)
	default:
		for _, u := range r.Users {
			if u.Error != "" {
				e.in.Log.WarnContext(ctx, "database not pruned", "user", u.User, "err", u.Error)
			}
		}
		e.in.Log.InfoContext(ctx, "databases pruned", "users", len(r.Users), "failed", r.Failed, "activities", r.Activities, "objects", r.Objects, "reports", r.Reports, "forgotten_actors", r.Forgotten, "forgotten_hosts", r.Hosts,
			"deliveries", r.Deliveries, "jobs", r.Jobs, "failed_deliveries", r.Lapsed, "audit", r.Audits, "messages", r.Messages, "acquaintances", r.Strangers,
			"took", time.Duration(r.Millis)*time.Millisecond)
	}
}
