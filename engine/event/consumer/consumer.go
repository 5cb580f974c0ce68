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
	"slices"
	"strconv"
	"strings"
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

	maxReason = 1000 // bytes of the error in a dead letter
	remember  = 10_000
	waitLimit = time.Second // of one wait for events: the end of a context is noticed after it
	retry     = time.Second // after Redis did not answer
	leastHold = 100 * time.Millisecond
)

// Outcome is what became of an event that was handed out.
type Outcome string

// The outcomes.
const (
	Handled  Outcome = "handled"
	Failed   Outcome = "failed"   // it comes again, or is Dead next
	Repeated Outcome = "repeated" // it had been handled by this process, and was dropped
	Dead     Outcome = "dead"     // it is a dead letter
	Lost     Outcome = "lost"     // the stream dropped it before it was handled
)

// Config says what is read, and by which name.
type Config struct {
	Events  *keyspace.Store
	User    vocab.Username
	Group   string
	Name    string        // of this consumer in the group: the same at its next start; no two have one at once
	Idle    time.Duration // DefaultIdle unless a test wants less
	Log     *slog.Logger
	Observe func(Outcome) // is called for each outcome, so that a program can count them; may be nil
}

// Consumer reads one user's events.
type Consumer struct {
	Config
	member   keyspace.Member
	handle   func(context.Context, event.Event) error
	seen     *repeats
	settle   func(context.Context) error // that Redis is still to be told of the last event; nil: nothing
	resumed  bool                        // nothing is left of before the start
	last     keyspace.ID                 // of before the start, that was handed out last
	sweep    keyspace.ID                 // where the search for the events of dead consumers goes on
	takeOver time.Time                   // when it begins again
}

// New returns a consumer that hands events to handle, one after the other. An error of handle says
// that the event is to be handled again. While handle works no other consumer is handed the event.
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

// Run handles events until ctx ends; it begins with those that a consumer of this name was handed
// before and did not acknowledge. While Redis does not answer, or the engine has not made the group
// again that Redis lost, it waits.
func (c *Consumer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.awaitRedis(ctx, c.takeStep(ctx)); err != nil {
			return err
		}
	}
	if err := c.settleLast(context.WithoutCancel(ctx)); err != nil { // it was handled, though ctx ended meanwhile
		c.Log.WarnContext(ctx, "an event that was handled is not acknowledged and comes again", "user", c.User, "group", c.Group, "err", err)
	}
	return ctx.Err()
}

// takeStep tells Redis of the last event, or handles the next one.
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

// settleLast tells Redis what it is still to be told of the last event.
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

// next has the next event handed out: one of before the start, one of a dead consumer, or a new
// one. It returns nil when there is none now.
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
	return c.member.Next(ctx, min(waitLimit, time.Until(c.takeOver)))
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

// handleOne handles one event, and notes what Redis is to be told of it: nothing when it is to be
// handled again.
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
	if d.Tries > MaxTries { // the consumer that had it last ended without a word
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
	case ctx.Err() != nil: // not handled, and not for a fault of its own
		return
	}
	c.Observe(Failed)
	c.Log.WarnContext(ctx, "event not handled", "user", c.User, "event", d.ID, "type", e.Type, "try", d.Tries, "err", err)
	if d.Tries == MaxTries {
		c.bury(d, err)
	}
}

// callHandler calls the handler, and holds the event meanwhile.
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

// bury notes that an event is to be put aside as a dead letter, with the reason.
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
