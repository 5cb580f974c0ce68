package user

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// withheldFor is the time for which one event counts withheld events (see Withhold).
const withheldFor = time.Hour

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

// Add sets aside an activity that could not be applied, and claims its id. Of several versions
// under one id, the one that came last is set aside.
func (t Poison) Add(ctx context.Context, p Poisoned) error {
	if _, err := t.all.Activities.Claim(ctx, []Owned{{p.URI, p.Actor}, {cmp.Or(p.Version, p.URI), p.Actor}}); err != nil {
		return err
	}
	reason := strings.ReplaceAll(strings.ToValidUTF8(p.Reason, "?"), "\x00", "?") // it may quote bytes that a text column refuses
	_, err := t.execBeside(ctx, "set poison aside", `INSERT INTO poison (uri, actor_uri, raw, reason, forwarders) VALUES (@uri, @actor, @raw, @reason, @forwarders)
		ON CONFLICT (uri, actor_uri) DO UPDATE SET raw = excluded.raw, reason = excluded.reason, created_at = excluded.created_at, forwarders = excluded.forwarders`,
		named{"uri": p.URI, "actor": p.Actor, "raw": p.Raw, "reason": reason, "forwarders": idsOrNull(p.Forwarders)})
	return err
}

// Answer is the stored answer to a dispatch with an Idempotency-Key.
type Answer struct {
	Digest []byte // SHA-256 of the request's body
	Answer json.RawMessage
}

// keptAnswers limits how long a stored answer is replayed.
const keptAnswers = 24 * time.Hour

// Find returns the answer that a dispatch with this key got within the last day, or nil if there
// is none. It deletes an older answer, so that the key is free again.
func (t Answers) Find(ctx context.Context, key string, now time.Time) (*Answer, error) {
	if t.ahead.asked.answersTo(key) {
		return t.ahead.asked.answer, nil
	}
	return one[Answer](ctx, t.tx, "read answer", findAnswer, key, now.Add(-keptAnswers))
}

const findAnswer = `WITH old AS (DELETE FROM idempotency_keys WHERE key = $1 AND created_at < $2)
	SELECT digest, answer FROM idempotency_keys WHERE key = $1 AND created_at >= $2`

// Add stores an answer for a day, with the next statement of the transaction or with its commit.
// If another transaction has added an answer with the same key and not ended yet, that statement
// waits for the other transaction. If the other one commits, this transaction fails with an error
// that TakenKey recognizes.
func (t Answers) Add(key string, a Answer, now time.Time) {
	t.unsent.later(`INSERT INTO idempotency_keys (key, digest, answer, created_at) VALUES (@key, @digest, @answer, @now)`,
		named{"key": key, "digest": a.Digest, "answer": a.Answer, "now": now})
}

// pruneAnswers removes the answers that are not replayed any more.
func pruneAnswers(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	n, err := t.execBeside(ctx, "prune answers", `DELETE FROM idempotency_keys WHERE key IN (SELECT key FROM idempotency_keys WHERE created_at < $1 LIMIT $2)`,
		time.Now().Add(-keptAnswers), pruneBatch)
	if n == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{}, next, err
}

// TakenKey reports whether err says that another dispatch has stored an answer under the
// Idempotency-Key meanwhile.
func TakenKey(err error) bool { return postgres.Violates(err, "idempotency_keys_pkey") }
