package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	tailPage = 200 // events per read
	// tailWait is the longest time of one wait for events. After each wait the tail checks
	// whether the context has ended.
	tailWait = time.Second
)

// Types of items that appear between the events of a tail.
const (
	TailGap   = "_gap"   // events before FirstID are neither in the stream nor in the database
	TailReset = "_reset" // the user's database was set back; the tail begins at its first event
)

// Streams are the streams of users' events.
type Streams struct{ in *instance.Instance }

// TailChoice selects events of a user, and where to begin.
type TailChoice struct {
	User    vocab.Username
	Last    int       // begin with this many newest chosen events, unless Since or After is set
	Since   time.Time // begin with the events since this time
	After   string    // begin after the event with this id
	Types   []string  // patterns such as create.*; all types if empty
	Sources []string  // patterns for the source; all sources if empty
	Follow  bool      // wait for further events until the context ends
	Count   int       // end after this many events; no limit if 0
}

// TailItem is an event, or a note of type TailGap or TailReset between events.
type TailItem struct {
	ID        string          `json:"id,omitempty"`
	Type      string          `json:"type"`
	Source    string          `json:"source,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	Timestamp string          `json:"timestamp,omitempty"`
	FirstID   string          `json:"first_id,omitempty"` // only for TailGap: the id of the oldest event that is stored
}

// TailSink has the functions that receive the result of a tail.
type TailSink struct {
	Item     func(TailItem) error
	Position func(id string)    // every event up to this id was read, even if it was not chosen
	Reached  func(reached bool) // called with false when Redis stops answering, with true when it answers again
}

// tail is one running call of Tail.
type tail struct {
	TailChoice
	TailSink
	reader *event.Reader
	last   keyspace.ID // the event that was read last
	shown  int
	away   bool // Redis does not answer
}

// Tail reads a user's stream without a consumer group, so it does not affect any group. It ends
// after Count events or when the context ends. If Follow is false, it also ends after the last
// stored event.
func (s Streams) Tail(ctx context.Context, c TailChoice, sink TailSink) error {
	t := &tail{TailChoice: c, TailSink: sink}
	if err := t.check(); err != nil {
		return err
	}
	if _, err := s.in.DB.Instance.Users.FindUndeleted(ctx, c.User); err != nil {
		return err
	}
	if err := s.in.OpenRedis(ctx, false); err != nil {
		return err
	}
	t.reader = &event.Reader{Store: s.in.DB, Streams: s.in.Keyspace.Events}
	if done, err := t.showFirst(ctx); done || err != nil {
		return err
	}
	return t.follow(ctx)
}

// check refuses malformed patterns and a malformed id.
func (t *tail) check() (err error) {
	for _, p := range slices.Concat(t.Types, t.Sources) {
		if _, err := path.Match(p, ""); err != nil {
			return fault.New(fault.Usage, fmt.Sprintf("%.60q is not a pattern", p)).WithHint("write such as 'create.*' or '*.received'")
		}
	}
	if t.After != "" {
		if t.last, err = keyspace.ParseID(t.After); err != nil {
			return fault.New(fault.Usage, err.Error())
		}
	}
	return nil
}

// isChosen reports whether an event is to be shown.
func (t *tail) isChosen(e event.Event) bool {
	return matchesAny(t.Types, e.Type) && matchesAny(t.Sources, e.Source)
}

// matchesAny reports whether a text matches one of the patterns. Without patterns every text
// matches.
func matchesAny(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		is, err := path.Match(p, text)
		return is && err == nil
	})
}

// showFirst shows the events that are stored already. It reports true when the tail is complete.
func (t *tail) showFirst(ctx context.Context) (done bool, err error) {
	if t.After == "" && t.Since.IsZero() {
		return t.showNewest(ctx)
	}
	if t.After == "" {
		if t.last, err = t.reader.Before(ctx, t.User, t.Since); err != nil {
			return false, err
		}
	}
	for {
		p, err := t.reader.After(ctx, t.User, t.last, tailPage)
		if err != nil {
			return false, err
		}
		if done, err := t.showPage(p); done || err != nil {
			return done, err
		}
		if len(p.Events) == 0 && !p.Ahead {
			return !t.Follow, nil
		}
	}
}

// showNewest shows the last events of the stream. It reports true when the tail is complete.
func (t *tail) showNewest(ctx context.Context) (done bool, err error) {
	last, err := t.reader.Last(ctx, t.User)
	if err != nil {
		return false, err
	}
	events, err := t.reader.Newest(ctx, t.User, t.Last, t.isChosen)
	if err != nil {
		return false, err
	}
	if t.last = last; len(events) > 0 && last.Less(events[len(events)-1].ID) {
		t.last = events[len(events)-1].ID
	}
	t.Position(t.last.String())
	if done, err := t.showEvents(events); done || err != nil {
		return done, err
	}
	return !t.Follow, nil
}

// showPage shows a page of events after the last one. It reports true when Count events were
// shown.
func (t *tail) showPage(p event.Page) (done bool, err error) {
	switch {
	case p.Ahead:
		t.last = keyspace.ID{}
		return false, t.Item(TailItem{Type: TailReset})
	case p.Gap:
		if err := t.Item(TailItem{Type: TailGap, FirstID: p.Events[0].ID.String()}); err != nil {
			return false, err
		}
	}
	return t.showEvents(p.Events)
}

func (t *tail) showEvents(events []event.Event) (done bool, err error) {
	for _, e := range events {
		if t.last.Less(e.ID) {
			t.last = e.ID
			t.Position(e.ID.String())
		}
		if !t.isChosen(e) {
			continue
		}
		item := TailItem{ID: e.ID.String(), Type: e.Type, Source: e.Source, Payload: e.Payload, Timestamp: e.Timestamp}
		if err := t.Item(item); err != nil {
			return false, err
		}
		if t.shown++; t.shown == t.Count {
			return true, nil
		}
	}
	return false, nil
}

// follow shows new events until Count events were shown or ctx ends. After an outage of Redis it
// continues at the same place.
func (t *tail) follow(ctx context.Context) error {
	for {
		p, err := t.reader.Next(ctx, t.User, t.last, tailPage, tailWait)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case keyspace.IsAway(err):
			t.tellReached(false)
			if err := sleepJittered(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		t.tellReached(true)
		if done, err := t.showPage(p); done || err != nil {
			return err
		}
	}
}

// tellReached calls Reached when Redis stops answering and when it answers again, once each
// time.
func (t *tail) tellReached(reached bool) {
	if t.away == reached {
		t.away = !reached
		t.Reached(reached)
	}
}

// sleepJittered waits a random time from half a second to one and a half, so that many readers do
// not reconnect at the same moment.
func sleepJittered(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(500*time.Millisecond + rand.N(time.Second)):
		return nil
	}
}
