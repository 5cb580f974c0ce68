package db

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
)

// withheldFor is how long withheld events are counted in one event.
const withheldFor = time.Hour

// eventLock is the key of the advisory lock under which events are numbered.
const eventLock = 7305808869232652

// Event is something that happened to the user.
type Event struct {
	Seq     int64
	Type    string // "create.received"
	Source  string // "ap", or "local" of what the user alone has
	Payload json.RawMessage
	At      time.Time
	Milli   int64 // of its id on the stream; it never falls
}

// AddEvent appends an event to the user's outbox when the transaction commits. Transactions that
// add events commit one after another, in the order of their numbers: who reads on from the last
// number misses none.
func (t *Tx) AddEvent(ctx context.Context, e Event) error {
	t.unsent.events = append(t.unsent.events, e)
	return t.added(ctx, len(e.Payload))
}

// WithholdEvent counts an event that is not added. Within an hour all are counted in one event
// like e, in the member count of its payload; it stays where it is while the count grows.
func (t *Tx) WithholdEvent(e Event) { t.unsent.withheld = append(t.unsent.withheld, e) }

// Events returns up to n events after a sequence number, the oldest first.
func (t *Tx) Events(ctx context.Context, after int64, n int) ([]Event, error) {
	return collect[Event](ctx, t, "read events", `SELECT seq, type, source, payload, created_at, ms FROM event_outbox WHERE seq > $1 ORDER BY seq LIMIT $2`, after, n)
}

// EventBefore returns the last event before a time, nil when there is none.
func (t *Tx) EventBefore(ctx context.Context, at time.Time) (*Event, error) {
	return one[Event](ctx, t, "find the event before a time", `SELECT seq, type, source, payload, created_at, ms FROM event_outbox WHERE created_at < $1 ORDER BY seq DESC LIMIT 1`, at)
}

// EventByID returns the event of the outbox whose payload has the eventId, nil when there is none.
func (t *Tx) EventByID(ctx context.Context, id uuid.UUID) (*Event, error) {
	return one[Event](ctx, t, "find an event by its id", `SELECT seq, type, source, payload, created_at, ms FROM event_outbox
		WHERE payload ->> 'eventId' = $1 ORDER BY seq DESC LIMIT 1`, id.String())
}

// Poison sets an activity aside that could not be applied, and takes its id.
func (t *Tx) Poison(ctx context.Context, p Poisoned) error {
	if _, err := t.Claim(ctx, []Owned{{p.URI, p.Actor}}); err != nil {
		return err
	}
	reason := strings.ReplaceAll(strings.ToValidUTF8(p.Reason, "?"), "\x00", "?") // it may quote what could not be stored
	_, err := t.execBeside(ctx, "set poison aside", `INSERT INTO poison (uri, actor_uri, raw, reason, forwarders) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (uri, actor_uri) DO UPDATE SET reason = excluded.reason, created_at = excluded.created_at, forwarders = excluded.forwarders`,
		p.URI, p.Actor, p.Raw, reason, idsOrNull(p.Forwarders))
	return err
}

// Answer is what a dispatch with an Idempotency-Key was answered.
type Answer struct {
	Digest []byte // SHA-256 of the request's body
	Answer json.RawMessage
}

// keptAnswers is how long an answer is replayed.
const keptAnswers = 24 * time.Hour

// StoredAnswer returns what the key was answered within the last day, nil when it is new.
func (t *Tx) StoredAnswer(ctx context.Context, key string, now time.Time) (*Answer, error) {
	if _, err := t.execBeside(ctx, "drop old answers", `DELETE FROM idempotency_keys WHERE created_at < $1`, now.Add(-keptAnswers)); err != nil {
		return nil, err
	}
	return one[Answer](ctx, t, "read answer", `SELECT digest, answer FROM idempotency_keys WHERE key = $1`, key)
}

// StoreAnswer keeps the answer for a day. Of two dispatches with one key the second waits for the
// first, and then its transaction fails with TakenKey.
func (t *Tx) StoreAnswer(ctx context.Context, key string, a Answer, now time.Time) error {
	_, err := t.execBeside(ctx, "store answer", `INSERT INTO idempotency_keys (key, digest, answer, created_at) VALUES ($1, $2, $3, $4)`, key, a.Digest, a.Answer, now)
	return err
}

// TakenKey tells whether err is that an Idempotency-Key was used meanwhile.
func TakenKey(err error) bool { return postgres.Violates(err, "idempotency_keys_pkey") }
