package feed

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/singleflight"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// shareMiss reads a page that is not cached from the database, once for all readers who miss it at
// the same time. A reader gets what another one reads only if the state of the feed is the same
// for both: an acknowledged write changes it, so that later readers do not get what was read
// before. A reader who cannot know the state, because Redis does not answer, reads alone.
func (c *Cached) shareMiss(ctx context.Context, u vocab.Username, feed string, after *user.Place, limit int, part cache.Part) (Stored, error) {
	read := func(ctx context.Context) (Stored, error) { return c.readMiss(ctx, u, feed, after, limit, part) }
	state := part.State()
	if state == "" {
		return read(ctx)
	}
	name := fmt.Sprintf("%s %s %s %d %d %s %q", u, feed, markOf(after), offsetOf(after), limit, state, c.profiles.User(u).Languages)
	stored, isShared, err := c.flights.share(ctx, name, read)
	if err == nil && isShared && !c.hasCurrentCards(stored) {
		return read(ctx)
	}
	return stored, err
}

// hasCurrentCards reports whether the cards of local actors in a page are as they are now. Other
// changes of a page are changes of the state of its feed, but a local actor's profile is not.
func (c *Cached) hasCurrentCards(s Stored) bool {
	for id, card := range s.Cards {
		if now, isLocal := c.localCard(id); isLocal && now != card {
			return false
		}
	}
	return true
}

// readMiss reads a page from the database, and caches it.
func (c *Cached) readMiss(ctx context.Context, u vocab.Username, feed string, after *user.Place, limit int, part cache.Part) (Stored, error) {
	stored, err := c.Database.Page(ctx, u, feed, after, limit)
	if err != nil {
		return Stored{}, err
	}
	c.warnOf(ctx, u, c.keep(ctx, u, feed, after, part, stored))
	return stored, nil
}

// flights makes each read of the database once for all readers who ask for it at the same time.
type flights struct{ group singleflight.Group }

// share returns the result of read, which it calls once for all callers that give the same name
// at the same time. The result isShared reports whether there were several callers. A caller that
// gives up gets the fault Busy. It does not end the read, which the others wait for.
func (f *flights) share(ctx context.Context, name string, read func(context.Context) (Stored, error)) (s Stored, isShared bool, err error) {
	flight := f.group.DoChan(name, func() (any, error) { return recoverRead(context.WithoutCancel(ctx), read) })
	select {
	case done := <-flight:
		s, _ = done.Val.(Stored)
		return s, done.Shared, done.Err
	case <-ctx.Done():
		return Stored{}, false, fault.Wrap(fault.Busy, "time ran out", ctx.Err())
	}
}

// recoverRead calls read and turns a panic into an error, because nothing else recovers a panic in
// the goroutine of a flight.
func recoverRead(ctx context.Context, read func(context.Context) (Stored, error)) (s Stored, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return read(ctx)
}
