package user

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// WithheldFor is the time for which one event counts withheld events (see Withhold).
const WithheldFor = time.Hour

// eventLock is the key of the advisory lock under which events are numbered.
const eventLock = 7305808869232652

// Event is something that happened to the user.
type Event struct {
	Seq     int64
	Type    string // such as "create.received"
	Source  string // SourceAP or SourceLocal
	Payload json.RawMessage
	At      time.Time
	// Milli has the milliseconds of the event's id on the stream. It is never lower than that of
	// an earlier event.
	Milli int64
}

// The sources of events.
const (
	SourceAP    = "ap"
	SourceLocal = "local" // only this user has the event
)

// The degrees of trust in the actor who caused an event. Clients use them to decide whether to
// act on the event.
const (
	TrustSelf     = "self"
	TrustContact  = "contact" // the user follows the actor with the actor's consent, or they are friends
	TrustStranger = "stranger"
)

// NewEvent returns an event with the payload d. It adds to d the trust and a new id, by which
// consumers recognize repeats.
func NewEvent(kind, source, trust string, d vocab.Doc, now time.Time) Event {
	d["eventId"], d["trust"] = uuid.Must(uuid.NewV7()).String(), trust
	return Event{Type: kind, Source: source, Payload: d.JSON(), At: now}
}

const eventColumns = `seq, type, source, payload, created_at AS at, ms AS milli`

// Add stores an event when the transaction commits. Transactions that add events commit one after
// another, in the order of the numbers of these events. So a reader that continues after the last
// number that it has seen misses no event.
func (t Events) Add(ctx context.Context, e Event) error {
	e.Payload = document(e.Payload)
	t.unsent.events = append(t.unsent.events, e)
	return t.countRow(ctx, len(e.Payload))
}

// Withhold counts an event instead of adding it. One event like e is stored for all withheld
// events of an hour. The member "count" in the payload of that event has the number of withheld
// events. While this count grows, the number and the time of the stored event stay the same.
func (t Events) Withhold(e Event) {
	e.Payload = document(e.Payload)
	t.unsent.withheld = append(t.unsent.withheld, e)
}

// document replaces the characters of a JSON document that a jsonb column refuses. Events quote
// peers, and an event that cannot be stored would make its whole transaction fail.
func document(d json.RawMessage) json.RawMessage {
	if utf8.Valid(d) && !bytes.Contains(d, []byte(`\u0000`)) {
		return d
	}
	return json.RawMessage(escapedNUL.Replace(text(string(d))))
}

// escapedNUL replaces NUL in a JSON document by U+FFFD. A backslash that is escaped begins no
// escape.
var escapedNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, `\ufffd`)

// List returns up to n events after a sequence number, the oldest first.
func (t Events) List(ctx context.Context, after int64, n int) ([]Event, error) {
	return collect[Event](ctx, t.tx, "read events", `SELECT `+eventColumns+` FROM event_outbox WHERE seq > $1 ORDER BY seq LIMIT $2`, after, n)
}

// FindBefore returns the last event before a time, nil when there is none.
func (t Events) FindBefore(ctx context.Context, at time.Time) (*Event, error) {
	return one[Event](ctx, t.tx, "find the event before a time", `SELECT `+eventColumns+` FROM event_outbox WHERE created_at < $1 ORDER BY seq DESC LIMIT 1`, at)
}

// Find returns the stored event whose payload has this eventId, nil when there is none.
func (t Events) Find(ctx context.Context, id uuid.UUID) (*Event, error) {
	return one[Event](ctx, t.tx, "find an event by its id", `SELECT `+eventColumns+` FROM event_outbox
		WHERE payload ->> 'eventId' = $1 ORDER BY seq DESC LIMIT 1`, id.String())
}
