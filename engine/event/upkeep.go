package event

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// retryEvery is how often it is looked who can be tried again.
	retryEvery = 250 * time.Millisecond

	// verifyEvery is how often streams are looked at of which nothing is to be emitted: they may
	// have lost entries.
	verifyEvery = 2 * time.Second

	// measureEvery is how often it is looked how much memory the streams take.
	measureEvery = time.Minute

	// idleKeep is how many events stay on the stream of a user who was idle for long, when memory
	// is short.
	idleKeep = 1000

	// atOnce is how many streams are asked about in one round trip.
	atOnce = 100

	// withheldFor is how long withheld events are counted in one event.
	withheldFor = time.Hour
)

// keepUp does what has its time, until ctx ends.
func (e *Emitter) keepUp(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	var asked, verified, measured time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := e.Now()
		e.retry(now)
		if now.Sub(asked) >= time.Second {
			asked = now
			e.takeDue(ctx)
		}
		if !e.Streams.IsUp() {
			continue
		}
		if now.Sub(verified) >= verifyEvery {
			verified = now
			e.verify(ctx)
		}
		if now.Sub(measured) >= measureEvery {
			measured = now
			e.makeRoom(ctx)
		}
	}
}

// retry queues the streams whose time has come.
func (e *Emitter) retry(now time.Time) {
	up := e.Streams.IsUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		switch {
		case s.queued || s.busy:
		case s.failures > 0 && up && !now.Before(s.retryAt):
			e.enqueue(s)
		case !s.closeAt.IsZero() && now.After(s.closeAt):
			s.closing = true
			e.enqueue(s)
		}
	}
}

// takeDue looks at the events of users that other processes have added some for.
func (e *Emitter) takeDue(ctx context.Context) {
	users, err := e.Users.TakeEventsDue(ctx)
	if err != nil && ctx.Err() == nil {
		e.Log.WarnContext(ctx, "users with events not read", "err", err)
	}
	for _, u := range users {
		e.tell(u, nil)
	}
}

// sweep looks once at every user, one after another: an earlier process may have ended before it
// had emitted everything.
func (e *Emitter) sweep(ctx context.Context) {
	users, err := e.Users.All(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.Log.ErrorContext(ctx, "users not read: their events wait for the next one", "err", err)
		}
		return
	}
	for _, u := range users {
		if u.State != instance.UserActive {
			continue
		}
		e.tell(u.Name, nil)
		if err := e.await(ctx, func() bool { return e.isAtRest(u.Name) }); err != nil {
			return
		}
	}
}

// isAtRest reports whether nothing can be done now about the user's stream.
func (e *Emitter) isAtRest(u vocab.Username) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streams[u]
	return s == nil || !s.queued && !s.busy
}

// verify compares the last ids of streams that are at rest with what they are known to be: a
// server that was emptied or replaced has lost entries, and gets them again.
func (e *Emitter) verify(ctx context.Context) {
	resting := e.resting()
	for part := range slices.Chunk(resting, atOnce) {
		users := make([]vocab.Username, len(part))
		for n, r := range part {
			users[n] = r.user
		}
		ids, err := e.Streams.LastIDs(ctx, users, Stream)
		if err != nil {
			return // whoever emits next notices too
		}
		for n, r := range part {
			if ids[n] != r.mark {
				e.doubt(r)
			}
		}
	}
}

// rest is a stream of which nothing is to be emitted.
type rest struct {
	user vocab.Username
	mark keyspace.ID
	used time.Time
}

func (e *Emitter) resting() []rest {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]rest, 0, len(e.streams))
	for _, s := range e.streams {
		if !s.queued && !s.busy && s.isKnown {
			all = append(all, rest{s.user, s.mark, s.used})
		}
	}
	return all
}

// doubt has a stream read again that still is as it was when it was asked about.
func (e *Emitter) doubt(r rest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.streams[r.user]; !s.queued && !s.busy && s.mark == r.mark {
		s.isKnown, s.behind = false, true
		e.metrics.repaired.Inc()
		e.enqueue(s)
	}
}

// makeRoom shortens the streams of those who were idle for longest while all together take more
// than they may.
func (e *Emitter) makeRoom(ctx context.Context) {
	streams := e.resting()
	slices.SortFunc(streams, func(a, b rest) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	var total int64
	for part := range slices.Chunk(streams, atOnce) {
		users := make([]vocab.Username, len(part))
		for n, r := range part {
			users[n] = r.user
		}
		sizes, err := e.Streams.Sizes(ctx, users, Stream)
		if err != nil {
			return
		}
		for _, size := range sizes {
			total += size
		}
	}
	e.metrics.memory.Set(float64(total))
	most := e.Memory / 10 * 9 // the rest is for what else the server needs
	for _, r := range streams {
		if total <= most {
			return
		}
		freed, err := e.Streams.Of(r.user).Trim(ctx, Stream, idleKeep)
		if err != nil {
			e.Log.WarnContext(ctx, "stream not shortened", "user", r.user, "err", err)
			return
		}
		total -= freed
	}
}
