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
	// retryEvery is the time between two searches for streams that can be tried again.
	retryEvery = 250 * time.Millisecond

	// listEvery is the time between two attempts to read the users.
	listEvery = time.Second

	// verifyEvery is the time between two checks of the streams at rest. A stream is at rest
	// if it is neither queued nor being emitted. Redis may have lost entries of such a
	// stream.
	verifyEvery = 2 * time.Second

	// measureEvery is the time between two measurements of the streams' memory.
	measureEvery = time.Minute

	// atOnce limits the streams that are queried in one round trip.
	atOnce = 100
)

// idleKeep has the numbers of events that stay on the streams of idle users when memory is short.
// If the first number does not free enough memory, the emitter uses the next one. One event
// always stays, because later events continue after its id.
var idleKeep = []int{1000, 100, 1}

// keepUp does the periodic work until ctx ends.
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
		e.queueRetries(now)
		if now.Sub(asked) >= time.Second {
			asked = now
			e.takeDue(ctx)
		}
		if !e.Streams.IsUp() {
			continue
		}
		if now.Sub(verified) >= verifyEvery {
			verified = now
			e.verifyResting(ctx)
		}
		if now.Sub(measured) >= measureEvery {
			measured = now
			e.makeRoom(ctx)
		}
	}
}

// queueRetries queues the failed streams that can be tried again, and those whose counting of
// withheld events has ended. A busy stream ends the counting with its next task.
func (e *Emitter) queueRetries(now time.Time) {
	up := e.Streams.IsUp()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		if !s.closeAt.IsZero() && now.After(s.closeAt) {
			s.closing, s.closeAt = true, time.Time{}
		}
		isDue := s.failures > 0 && up && !now.Before(s.retryAt)
		if isDue || s.closing && s.failures == 0 {
			e.enqueueStream(s)
		}
	}
}

// takeDue queues the streams of users that got events from other processes. It clears the marks
// events_due of these users afterwards, so that the events are emitted even if an answer of the
// database is lost.
func (e *Emitter) takeDue(ctx context.Context) {
	due, err := e.Users.ListEventsDue(ctx)
	for _, d := range due {
		e.tellStream(d.User, nil)
	}
	if err == nil && len(due) > 0 {
		err = e.Users.ClearEventsDue(ctx, due)
	}
	if err != nil && ctx.Err() == nil {
		e.Log.WarnContext(ctx, "users with events not read", "err", err)
	}
}

// sweepUsers queues the stream of every active user once, one after another, because an earlier
// process may have ended before it had emitted all events.
func (e *Emitter) sweepUsers(ctx context.Context) {
	for _, u := range e.listUsers(ctx) {
		if u.State != instance.UserActive {
			continue
		}
		e.tellStream(u.Name, nil)
		e.awaitRest(ctx, u.Name)
		if ctx.Err() != nil {
			return
		}
	}
}

// awaitRest waits until the user's stream is at rest, for databaseTime at most.
func (e *Emitter) awaitRest(ctx context.Context, u vocab.Username) {
	ctx, cancel := context.WithTimeout(ctx, databaseTime)
	defer cancel()
	_ = e.awaitState(ctx, func() bool { return e.isAtRest(u) }) // a stream that takes longer is still emitted
}

// listUsers returns all users. While they cannot be read it tries again, until ctx ends.
func (e *Emitter) listUsers(ctx context.Context) []instance.User {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		users, err := e.Users.All(ctx)
		if err == nil {
			return users
		}
		if ctx.Err() == nil {
			e.Log.WarnContext(ctx, "users not read: events of an earlier process wait", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isAtRest reports whether the user's stream is neither queued nor being emitted.
func (e *Emitter) isAtRest(u vocab.Username) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.streams[u]
	return s == nil || !s.queued && !s.busy
}

// verifyResting compares the last ids of the streams at rest with the expected ones. A Redis
// server that was emptied or replaced has lost entries, and these are emitted again.
func (e *Emitter) verifyResting(ctx context.Context) {
	resting := e.listResting()
	for part := range slices.Chunk(resting, atOnce) {
		users := make([]vocab.Username, len(part))
		for n, r := range part {
			users[n] = r.user
		}
		ids, err := e.Streams.LastIDs(ctx, users, Stream)
		if err != nil {
			return // the next emission also finds a loss
		}
		for n, r := range part {
			if ids[n] != r.mark {
				e.readAgain(r)
			}
		}
	}
}

// rest is a copy of the state of a stream at rest, that is, one that is neither queued nor being
// emitted. The stream may wait for a retry.
type rest struct {
	user vocab.Username
	mark keyspace.ID
	used time.Time
}

func (e *Emitter) listResting() []rest {
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

// readAgain queues a stream to be read from the database again, unless its state has changed or
// its user was removed since the copy r was made.
func (e *Emitter) readAgain(r rest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.streams[r.user]; s != nil && !s.queued && !s.busy && s.mark == r.mark {
		s.isKnown, s.behind = false, true
		e.metrics.repaired.Inc()
		e.enqueueStream(s)
	}
}

// makeRoom measures the memory of the streams at rest. If it is over the limit, makeRoom shortens
// the streams of the users who have been idle for longest. If that is not enough, it warns, and
// does not warn again before the streams have fit the limit.
func (e *Emitter) makeRoom(ctx context.Context) {
	streams := e.listResting()
	slices.SortFunc(streams, func(a, b rest) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	total, err := e.measureStreams(ctx, streams)
	if err != nil {
		return
	}
	e.metrics.memory.Set(float64(total))
	most := e.Memory / 10 * 9 // the server needs the rest itself
	for _, keep := range idleKeep {
		if total, err = e.shortenStreams(ctx, streams, keep, total, most); err != nil {
			return
		}
	}
	if total > most && !e.isShort {
		e.Log.WarnContext(ctx, "the streams of events do not fit events.memory with one event each: Redis may refuse events", "bytes", total, "limit", e.Memory,
			"hint", "raise events.memory, and maxmemory of the server of redis.events_url")
	}
	e.isShort = total > most
}

// measureStreams returns the memory of the streams.
func (e *Emitter) measureStreams(ctx context.Context, streams []rest) (total int64, err error) {
	for part := range slices.Chunk(streams, atOnce) {
		users := make([]vocab.Username, len(part))
		for n, r := range part {
			users[n] = r.user
		}
		sizes, err := e.Streams.Sizes(ctx, users, Stream)
		if err != nil {
			return 0, err
		}
		for _, size := range sizes {
			total += size
		}
	}
	return total, nil
}

// shortenStreams trims one stream after another, until all streams together have at most the size
// in the parameter most. The parameter keep is the number of events that stay on a trimmed
// stream. The parameter total is the size of all streams before. shortenStreams returns their new
// size. Sizes are in bytes.
func (e *Emitter) shortenStreams(ctx context.Context, streams []rest, keep int, total, most int64) (int64, error) {
	for _, r := range streams {
		if total <= most {
			break
		}
		freed, err := e.Streams.Of(r.user).Trim(ctx, Stream, keep)
		if err != nil {
			e.Log.WarnContext(ctx, "stream not shortened", "user", r.user, "err", err)
			return total, err
		}
		total -= freed
	}
	return total, nil
}
