// Package consumer reads a user's events as a member of a consumer group. It is for programs that
// must handle every event, such as an LLM engine. docs/events.md describes the guarantees that
// this package relies on.
//
// Every event is handled at least once, and acknowledged afterwards. If a consumer dies, the
// events that it has not acknowledged are delivered again. Events are delivered in the order of
// their numbers, but an event whose handling failed is delivered again later, after others.
// Repeats are dropped as far as this process remembers them.
package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// DefaultIdle limits the time for which an event may stay unacknowledged. After that time
	// its consumer counts as dead, and the event is delivered again.
	DefaultIdle = time.Minute

	// MaxTries limits the calls of the handler with one event. After the last one the event
	// becomes a dead letter.
	MaxTries = 5

	// keptDead is approximately the number of dead letters that are stored for a user.
	keptDead = 1000

	maxReason = 1000 // bytes of the error in a dead letter
	remember  = 10_000
	waitLimit = time.Second // longest wait for events, and for noticing the end of a context
	retry     = time.Second // how long to wait after Redis did not answer or refused a command
	leastHold = 100 * time.Millisecond
)

// Outcome is the result of the delivery of an event.
type Outcome string

// The outcomes.
const (
	Handled  Outcome = "handled"
	Failed   Outcome = "failed"   // it is delivered again, or becomes Dead
	Repeated Outcome = "repeated" // this process has handled it before; it was dropped
	Dead     Outcome = "dead"     // it became a dead letter
	Lost     Outcome = "lost"     // it was dropped from the stream before it was handled
)

// Config says which events a consumer reads and which name it has in the group.
type Config struct {
	Events  *keyspace.Store
	User    vocab.Username
	Group   string
	Name    string        // the consumer's name: the same after a restart, and unique in the group
	Idle    time.Duration // DefaultIdle if zero; tests use less
	Log     *slog.Logger
	Observe func(Outcome) // called for each outcome, for counters; may be nil
}

// Consumer reads one user's events.
type Consumer struct {
	Config
	member  keyspace.Member
	handle  func(context.Context, event.Event) error
	seen    *repeats
	settle  func(context.Context) error // tells Redis the result of the last event; nil: nothing to tell
	resumed bool                        // all events that Redis has delivered are handled, except failed ones
	// last is the last event that Resume or Next returned.
	last     keyspace.ID
	sweep    keyspace.ID // where the search for events of dead consumers continues
	takeOver time.Time   // when that search begins again
}

// New returns a consumer that calls handle with one event after another. If handle returns an
// error, the event is delivered again, up to MaxTries times in all. While handle runs and Redis
// answers, the event is not delivered to another consumer.
func New(c Config, handle func(context.Context, event.Event) error) *Consumer {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.Observe == nil {
		c.Observe = func(Outcome) {}
	}
	return &Consumer{Config: c, member: keyspace.Member{Space: c.Events.Of(c.User), Stream: event.Stream, Group: c.Group, Name: c.Name},
		handle: handle, seen: newRepeats(remember)}
}

// Run handles events until ctx ends. It begins with the events that were delivered to a consumer
// of this name before and not acknowledged. It waits while Redis does not answer. If Redis has
// lost the group, it waits until the engine has made the group again.
func (c *Consumer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.awaitRedis(ctx, c.takeStep(ctx)); err != nil {
			return err
		}
	}
	if err := c.settleLast(context.WithoutCancel(ctx)); err != nil { // the event was handled before ctx ended
		c.Log.WarnContext(ctx, "an event that was handled is not acknowledged and comes again", "user", c.User, "group", c.Group, "err", err)
	}
	return ctx.Err()
}

// takeStep tells Redis the result of the last event. If nothing more has to be told, it handles
// the next event.
func (c *Consumer) takeStep(ctx context.Context) error {
	if err := c.settleLast(ctx); err != nil || c.settle != nil {
		return err
	}
	d, err := c.next(ctx)
	if err == nil && d != nil {
		c.handleOne(ctx, *d)
	}
	return err
}

// settleLast tells Redis the result of the last event, if it has not been told yet.
func (c *Consumer) settleLast(ctx context.Context) error {
	settle := c.settle
	if settle == nil {
		return nil
	}
	c.settle = nil
	err := settle(ctx)
	if err != nil {
		c.settle = settle
	}
	return err
}

// next returns the next event, or nil if there is none now. First come the events that Redis
// delivered before the start or in an answer that was lost. Then come events of dead consumers,
// and new events.
func (c *Consumer) next(ctx context.Context) (*keyspace.Delivered, error) {
	switch {
	case !c.resumed:
		d, err := c.member.Resume(ctx, c.last)
		if d != nil {
			c.last = d.ID
		}
		c.resumed = err == nil && d == nil
		return d, err
	case !time.Now().Before(c.takeOver):
		part, err := c.member.TakeOver(ctx, c.sweep, c.Idle)
		for _, id := range part.Lost {
			c.noteLost(ctx, id)
		}
		if c.sweep = part.Next; err == nil && part.Next == (keyspace.ID{}) {
			c.takeOver = time.Now().Add(c.Idle / 2)
		}
		return part.Taken, err
	}
	d, err := c.member.Next(ctx, min(waitLimit, time.Until(c.takeOver)))
	if d != nil {
		c.last = d.ID
	}
	c.resumed = err == nil // Redis may have delivered an event whose answer was lost
	return d, err
}

// awaitRedis returns an error that a retry cannot fix. For any other error it waits a moment and
// returns nil.
func (c *Consumer) awaitRedis(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if !keyspace.IsAway(err) && !keyspace.IsRefusal(err) && !errors.Is(err, keyspace.ErrNoGroup) {
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

// handleOne handles one event, and sets settle to tell Redis the result. If the event has to be
// delivered again, it leaves settle nil, and Redis gets no result.
func (c *Consumer) handleOne(ctx context.Context, d keyspace.Delivered) {
	if d.Lost {
		c.noteLost(ctx, d.ID)
		return
	}
	e := event.Of(d.Entry)
	acknowledge := func(ctx context.Context) error { return c.member.Acknowledge(ctx, d.ID) }
	if c.seen.has(eventID(e)) {
		c.Observe(Repeated)
		c.settle = acknowledge
		return
	}
	if d.Tries > MaxTries { // its consumers ended without a result
		c.bury(d, errors.New("its consumers ended while they handled it"))
		return
	}
	err := c.callHandler(ctx, e)
	switch {
	case err == nil:
		c.seen.add(eventID(e))
		c.Observe(Handled)
		c.settle = acknowledge
		return
	case ctx.Err() != nil: // the handling was interrupted; this is no failure of the event
		return
	}
	c.Observe(Failed)
	c.Log.WarnContext(ctx, "event not handled", "user", c.User, "event", d.ID, "type", e.Type, "try", d.Tries, "err", err)
	if d.Tries == MaxTries {
		c.bury(d, err)
	}
}

// callHandler calls the handler, and keeps the event from other consumers meanwhile.
func (c *Consumer) callHandler(ctx context.Context, e event.Event) error {
	holding, release := context.WithCancel(ctx)
	released := make(chan struct{})
	go func() {
		defer close(released)
		c.hold(holding, e.ID)
	}()
	defer func() { release(); <-released }()
	return c.handle(ctx, e)
}

// hold keeps an event from other consumers until ctx ends.
func (c *Consumer) hold(ctx context.Context, id keyspace.ID) {
	tick := time.NewTicker(max(c.Idle/4, leastHold))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.member.Hold(ctx, id); err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "another consumer may be handed an event that is being handled", "user", c.User, "event", id, "err", err)
		}
	}
}

func (c *Consumer) noteLost(ctx context.Context, id keyspace.ID) {
	c.Observe(Lost)
	c.Log.WarnContext(ctx, "an event was dropped from the stream before it was handled", "user", c.User, "group", c.Group, "event", id,
		"hint", "the user's database has the newest 10,000: read them over /api/events, or raise events.maxlen")
}

// bury sets settle to store an event as a dead letter, with the reason, and then to acknowledge
// the event.
func (c *Consumer) bury(d keyspace.Delivered, why error) {
	reason := why.Error()
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	fields := append(slices.Clone(d.Fields), "id", d.ID.String(), "tries", strconv.Itoa(min(d.Tries, MaxTries)), "error", reason)
	c.settle = func(ctx context.Context) error {
		if err := c.member.Bury(ctx, fields, keptDead); err != nil {
			return err
		}
		c.seen.add(eventID(event.Of(d.Entry)))
		c.Observe(Dead)
		c.settle = func(ctx context.Context) error { return c.member.Acknowledge(ctx, d.ID) }
		return nil
	}
}

// eventID returns payload.eventId, which stays the same when an event is emitted again. If the
// payload has none, it returns the id of the entry.
func eventID(e event.Event) string {
	var payload struct {
		EventID string `json:"eventId"`
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil || payload.EventID == "" {
		return e.ID.String()
	}
	return payload.EventID
}
