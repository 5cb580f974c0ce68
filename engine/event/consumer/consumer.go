// Package consumer reads a user's events as a member of a consumer group: for programs that must
// handle every event, such as an LLM engine. docs/events.md has what it relies on.
//
// Every event is handled at least once, and acknowledged afterwards: what a consumer that died was
// handed is handed out again. Events come in the order of their numbers; one whose handling failed
// comes again later, after others. Repeats are dropped as far as this process remembers them.
package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// DefaultIdle is when an event that was not acknowledged is handed out again: its consumer is
	// taken for dead.
	DefaultIdle = time.Minute

	// MaxTries is how often an event is handed out. Then it goes to the dead letters.
	MaxTries = 5

	// keptDead is about how many dead letters of a user are kept.
	keptDead = 1000

	batch     = 100 // events handed out at once
	remember  = 10_000
	waitLimit = time.Second // of one wait for events: the end of a context is noticed after it
	retry     = time.Second // after Redis did not answer
)

// Config says what is read, and by which name.
type Config struct {
	Events *keyspace.Store
	User   vocab.Username
	Group  string
	Name   string        // of this consumer in the group: the same at its next start; no two have one at once
	Idle   time.Duration // DefaultIdle unless a test wants less
	Log    *slog.Logger
}

// Consumer reads one user's events.
type Consumer struct {
	Config
	member   keyspace.Member
	handle   func(context.Context, event.Event) error
	seen     *repeats
	backlog  []keyspace.Delivered // handed out, and not looked at yet
	resumed  bool                 // nothing is left of before the start
	last     keyspace.ID          // of before the start, that was handed out last
	takeOver time.Time            // when the events of dead consumers are looked for again
}

// New returns a consumer that hands events to handle, one after the other. An error of handle says
// that the event is to be handled again.
func New(c Config, handle func(context.Context, event.Event) error) *Consumer {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	return &Consumer{Config: c, member: keyspace.Member{Space: c.Events.Of(c.User), Stream: event.Stream, Group: c.Group, Name: c.Name},
		handle: handle, seen: newRepeats(remember)}
}

// Run handles events until ctx ends; it begins with those that a consumer of this name was handed
// before and did not acknowledge. While Redis does not answer, or the engine has not made the group
// again that Redis lost, it waits.
func (c *Consumer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.awaitRedis(ctx, c.takeStep(ctx)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// takeStep handles the next event that was handed out, or has some handed out.
func (c *Consumer) takeStep(ctx context.Context) (err error) {
	switch {
	case len(c.backlog) > 0:
		if err = c.handleOne(ctx, c.backlog[0]); err == nil {
			c.backlog = c.backlog[1:]
		}
	case !c.resumed:
		c.backlog, err = c.member.Resume(ctx, c.last)
		if err == nil && len(c.backlog) == 0 {
			c.resumed = true
		} else if err == nil {
			c.last = c.backlog[0].ID
		}
	case !time.Now().Before(c.takeOver):
		c.backlog, err = c.member.TakeOver(ctx, c.Idle)
		if err == nil && len(c.backlog) == 0 {
			c.takeOver = time.Now().Add(c.Idle / 2)
		}
	default:
		c.backlog, err = c.member.Next(ctx, batch, min(waitLimit, max(time.Until(c.takeOver), time.Millisecond)))
	}
	return err
}

// awaitRedis returns an error that does not pass by itself. After any other it waits a moment.
func (c *Consumer) awaitRedis(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if !keyspace.IsAway(err) && !errors.Is(err, keyspace.ErrNoGroup) {
		return err
	}
	c.Log.DebugContext(ctx, "events cannot be read now", "user", c.User, "group", c.Group, "err", err)
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return nil
}

// handleOne handles one event and acknowledges it, unless it is to be handled again.
func (c *Consumer) handleOne(ctx context.Context, d keyspace.Delivered) error {
	if d.Lost {
		c.Log.WarnContext(ctx, "an event was dropped from the stream before it was handled", "user", c.User, "group", c.Group, "event", d.ID,
			"hint", "the user's database has the newest 10,000: read them over /api/events, or raise events.maxlen")
		return nil
	}
	e := event.Of(d.Entry)
	id := eventID(e)
	if c.seen.has(id) {
		return c.member.Acknowledge(ctx, d.ID)
	}
	if d.Tries > MaxTries { // whoever had it last ended without a word
		return c.bury(ctx, d, errors.New("its consumers ended while they handled it"))
	}
	if err := c.handle(ctx, e); err != nil {
		if ctx.Err() != nil {
			return nil // not handled, and not for a fault of its own
		}
		c.Log.WarnContext(ctx, "event not handled", "user", c.User, "event", d.ID, "type", e.Type, "try", d.Tries, "err", err)
		if d.Tries < MaxTries {
			return nil
		}
		return c.bury(ctx, d, err)
	}
	c.seen.add(id)
	return c.member.Acknowledge(ctx, d.ID)
}

// bury puts an event aside as a dead letter, with the reason.
func (c *Consumer) bury(ctx context.Context, d keyspace.Delivered, why error) error {
	fields := append(append([]string{}, d.Fields...), "id", d.ID.String(), "error", why.Error())
	return c.member.Bury(ctx, d.ID, fields, keptDead)
}

// eventID returns payload.eventId, which an event keeps when it is emitted again; the id of its
// entry where the payload has none.
func eventID(e event.Event) string {
	var payload struct {
		EventID string `json:"eventId"`
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil || payload.EventID == "" {
		return e.ID.String()
	}
	return payload.EventID
}
