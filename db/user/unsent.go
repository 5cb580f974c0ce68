package user

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/postgres"
)

// unsent holds the rows that a transaction has added but not sent yet. One statement sends all
// rows of a table, sorted by key, so that transactions do not deadlock.
type unsent struct {
	begin      string // the statement that begins the transaction; empty once it is sent
	statements []statement
	activities []Activity
	objects    []Object
	feed       []FeedEntry
	reactions  []reactionRow // one per object, actor, kind and emoji
	size       int           // of the documents, in bytes
	events     []Event       // sent only with the commit, because sending them takes a lock
	withheld   []Event       // counted with the commit
}

// statement is a statement that returns no rows.
type statement struct {
	query string
	args  []any
}

type reactionRow struct {
	Reaction
	at time.Time
}

// react adds a reaction in place of an earlier one with the same object, actor, kind and emoji.
func (u *unsent) react(r reactionRow) {
	for n, before := range u.reactions {
		if before.Object == r.Object && before.Actor == r.Actor && before.Kind == r.Kind && before.Emoji == r.Emoji {
			u.reactions[n] = r
			return
		}
	}
	u.reactions = append(u.reactions, r)
}

// maxUnsent is the number of bytes at which the unsent rows are sent.
const maxUnsent = 4 << 20

// countRow counts an added row of this size, and sends the unsent rows when they reach maxUnsent.
func (t *tx) countRow(ctx context.Context, size int) error {
	if t.unsent.size += size; t.unsent.size < maxUnsent {
		return nil
	}
	return t.send(ctx, "store rows", t.unsent.batch())
}

// later queues a statement that does not change relationships, objects or anything that readers
// see. It is sent with the next statement or with the commit. If it causes an error, the error
// appears then.
func (u *unsent) later(query string, args ...any) {
	u.statements = append(u.statements, statement{query, args})
}

// batch returns a batch that begins with the unsent statements and rows, except events.
func (u *unsent) batch() *pgx.Batch {
	b := &pgx.Batch{}
	if u.begin != "" {
		b.Queue(u.begin)
	}
	for _, s := range u.statements {
		b.Queue(s.query, s.args...)
	}
	u.queueObjects(b)
	u.queueActivities(b)
	u.queueFeed(b)
	u.queueReactions(b)
	*u = unsent{events: u.events, withheld: u.withheld}
	return b
}

// commit sends the unsent rows and the commit in one round trip. If the server has not answered
// on this connection yet, it sends the rows alone first. Otherwise, if the connection turned out
// to be lost, nobody could tell whether the transaction was committed. For the same reason the
// commit goes on for commitTime if ctx ends meanwhile, as when a client goes away.
func (t *tx) commit(ctx context.Context) error {
	if t.isLook {
		return nil
	}
	if !t.heard {
		if err := t.send(ctx, "begin", t.unsent.batch()); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return txFault("commit", err)
	}
	ctx, cancel := postgres.Outlive(ctx, commitTime)
	defer cancel()
	b := t.unsent.batch()
	t.queueEvents(b)
	t.queueWithheld(b)
	b.Queue(`commit`).Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	err := t.send(ctx, "commit", b)
	t.outcome = outcomeOf(err)
	return err
}

// queueObjects stores objects that were not in the database when they were added. If another
// transaction has stored one of them since, this transaction fails with a conflict and is run
// again.
func (u *unsent) queueObjects(b *pgx.Batch) {
	if len(u.objects) == 0 {
		return
	}
	n := len(u.objects)
	ids, uris, published, raws, updated, readable := make([]uuid.UUID, n), make([]string, n), make([]time.Time, n), make([]string, n), make([]*time.Time, n), make([]string, n)
	for i, o := range u.objects {
		ids[i], uris[i], published[i], raws[i], updated[i], readable[i] = o.ID, string(o.URI), o.Published, string(o.Raw), o.UpdatedAt, string(o.Readable)
	}
	b.Queue(`INSERT INTO objects (id, uri, published, raw, updated_at, readable)
		SELECT id, uri, published, raw::jsonb, updated_at, nullif(readable, '')::jsonb
		FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::timestamptz[], $6::text[])
			AS o (id, uri, published, raw, updated_at, readable) ORDER BY uri`, ids, uris, published, raws, updated, readable)
}

func (u *unsent) queueActivities(b *pgx.Batch) {
	if len(u.activities) == 0 {
		return
	}
	n := len(u.activities)
	ids, published := make([]uuid.UUID, n), make([]time.Time, n)
	uris, directions, types, actors, objects, raws := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, a := range u.activities {
		ids[i], uris[i], directions[i], types[i], actors[i], objects[i], published[i], raws[i] =
			a.ID, string(a.URI), a.Direction, a.Type, string(a.Actor), string(a.Object), a.Published, string(a.Raw)
	}
	b.Queue(`INSERT INTO activities (id, uri, direction, type, actor_uri, object_uri, published, raw)
		SELECT id, uri, direction, type, actor_uri, nullif(object_uri, ''), published, raw::jsonb
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[])
			AS a (id, uri, direction, type, actor_uri, object_uri, published, raw) ORDER BY uri, actor_uri
		ON CONFLICT (uri, actor_uri) DO NOTHING`, ids, uris, directions, types, actors, objects, published, raws)
}

func (u *unsent) queueFeed(b *pgx.Batch) {
	if len(u.feed) == 0 {
		return
	}
	n := len(u.feed)
	ids, activities, actors, published := make([]uuid.UUID, n), make([]string, n), make([]string, n), make([]time.Time, n)
	for i, e := range u.feed {
		ids[i], activities[i], actors[i], published[i] = e.ID, string(e.Activity), string(e.Actor), e.Published
	}
	b.Queue(`INSERT INTO feed (id, activity_uri, actor_uri, published)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) AS f (id, activity_uri, actor_uri, published) ORDER BY actor_uri, activity_uri
		ON CONFLICT (actor_uri, activity_uri) DO NOTHING`, ids, activities, actors, published)
}

func (u *unsent) queueReactions(b *pgx.Batch) {
	if len(u.reactions) == 0 {
		return
	}
	n := len(u.reactions)
	objects, actors, kinds, emojis, types, activities, at := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]time.Time, n)
	for i, r := range u.reactions {
		objects[i], actors[i], kinds[i], emojis[i], types[i], activities[i], at[i] = string(r.Object), string(r.Actor), r.Kind, r.Emoji, r.Type, string(r.Activity), r.at
	}
	b.Queue(`INSERT INTO reactions (object_uri, actor_uri, kind, emoji, type, activity_uri, created_at)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
			AS r (object_uri, actor_uri, kind, emoji, type, activity_uri, created_at) ORDER BY object_uri, kind, actor_uri, emoji
		ON CONFLICT (object_uri, kind, actor_uri, emoji) DO UPDATE SET type = excluded.type, activity_uri = excluded.activity_uri, created_at = excluded.created_at`,
		objects, actors, kinds, emojis, types, activities, at)
}

// queueEvents numbers the events in their order, under a lock that lasts until the commit. The
// stream id of an event contains the milliseconds of its time. If the clock has stepped back,
// the id contains the milliseconds of the event before it.
func (t *tx) queueEvents(b *pgx.Batch) {
	n := len(t.unsent.events)
	if n == 0 {
		return
	}
	types, sources, payloads, at, milli := make([]string, n), make([]string, n), make([]string, n), make([]time.Time, n), make([]int64, n)
	for i, e := range t.unsent.events {
		types[i], sources[i], payloads[i], at[i], milli[i] = e.Type, e.Source, string(e.Payload), e.At, max(e.At.UnixMilli(), milli[max(i-1, 0)])
	}
	b.Queue(`SELECT pg_advisory_xact_lock($1)`, eventLock) // the next statement sees commits made during the wait
	b.Queue(`INSERT INTO event_outbox (type, source, payload, created_at, ms)
		SELECT type, source, payload::jsonb, created_at, greatest(`+lastMilli+`, milli)
		FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[]) WITH ORDINALITY AS e (type, source, payload, created_at, milli, n) ORDER BY n
		RETURNING seq, ms AS milli`, types, sources, payloads, at, milli).Query(t.numberEvents)
}

// numberEvents reads the numbers and milliseconds that the events were assigned.
func (t *tx) numberEvents(rows pgx.Rows) error {
	type number struct{ Seq, Milli int64 }
	given, err := pgx.CollectRows(rows, pgx.RowToStructByName[number])
	slices.SortFunc(given, func(a, b number) int { return cmp.Compare(a.Seq, b.Seq) })
	for n, g := range given {
		e := t.unsent.events[n]
		e.Seq, e.Milli = g.Seq, g.Milli
		t.numbered = append(t.numbered, e)
	}
	return err
}

// lastMilli selects the milliseconds of the newest event's id.
const lastMilli = `coalesce((SELECT ms FROM event_outbox ORDER BY seq DESC LIMIT 1), 0)`

// queueWithheld counts withheld events (see Withhold), under the lock under which events are
// numbered. The open row counts until CloseWithheld replaces it, even after WithheldFor. No
// second row is opened before that, because then CloseWithheld would not find the first one, and
// the first one would never be emitted.
func (t *tx) queueWithheld(b *pgx.Batch) {
	n := len(t.unsent.withheld)
	if n == 0 {
		return
	}
	e := t.unsent.withheld[n-1]
	b.Queue(`SELECT pg_advisory_xact_lock($1)`, eventLock)
	b.Queue(`WITH open AS (
			UPDATE event_outbox e SET payload = jsonb_set(e.payload, '{count}', to_jsonb((e.payload ->> 'count')::bigint + $1))
			FROM event_window w WHERE e.seq = w.withheld RETURNING e.seq
		), added AS (
			INSERT INTO event_outbox (type, source, payload, created_at, ms)
			SELECT $2, $3, jsonb_set($4::jsonb, '{count}', to_jsonb($1::bigint)), $5::timestamptz, greatest(`+lastMilli+`, $6::bigint) WHERE NOT EXISTS (SELECT FROM open)
			RETURNING seq, type, source, payload, created_at, ms
		), marked AS (
			INSERT INTO event_window (up_to, kept, withheld) SELECT 0, 0, seq FROM added
			ON CONFLICT (one) DO UPDATE SET withheld = excluded.withheld
		)
		SELECT `+eventColumns+` FROM added`, int64(n), e.Type, e.Source, string(e.Payload), e.At, e.At.UnixMilli()).
		Query(func(rows pgx.Rows) error {
			added, err := pgx.CollectRows(rows, pgx.RowToStructByName[Event])
			t.numbered = append(t.numbered, added...)
			return err
		})
}
