package user

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Grave is the id of a deleted object, with the Tombstone that replaces it.
type Grave struct {
	URI vocab.ID
	// Author is the actor that deleted the object; another actor may still use the id for its own
	// object.
	Author    vocab.ID
	Tombstone json.RawMessage
}

// buriedAtOnce limits how many objects one batch of statements buries.
const buriedAtOnce = 5000

// Bury stores for good that an object was deleted. The stored object becomes the Tombstone. The
// activities about it are removed from the feed, and its text is removed from activities and
// deliveries. Its reactions, votes and pins, and its places in streams, are removed. Bury reports
// whether the object was stored and not deleted before.
func (t Objects) Bury(ctx context.Context, g Grave, now time.Time) (bool, error) {
	n, err := t.BuryAll(ctx, []Grave{g}, now)
	return n == 1, err
}

// BuryAll does for many objects what Bury does for one. It returns how many of the objects were
// stored and not deleted before.
func (t Objects) BuryAll(ctx context.Context, graves []Grave, now time.Time) (stored int64, err error) {
	for some := range slices.Chunk(graves, buriedAtOnce) {
		n, err := t.addGraves(ctx, some, now)
		if err != nil {
			return 0, err
		}
		stored += n
	}
	return stored, nil
}

func (t Objects) addGraves(ctx context.Context, graves []Grave, now time.Time) (stored int64, err error) {
	ids, authored, tombstones := make([]vocab.ID, len(graves)), make([]Owned, len(graves)), make([]string, len(graves))
	for n, g := range graves {
		ids[n], authored[n], tombstones[n] = g.URI, Owned{g.URI, g.Author}, string(g.Tombstone)
		t.ahead.forgetObject(g.URI)
	}
	t.touched.touch(feeds|OutboxPages|FeaturedPages, ids...)
	uris := texts(ids)
	b := t.unsent.batch()
	b.Queue(`INSERT INTO tombstones (digest, deleted_at) SELECT DISTINCT d, $2::timestamptz FROM unnest($1::bytea[]) d ORDER BY d
		ON CONFLICT DO NOTHING`, keys(authored), now)
	b.Queue(`DELETE FROM feed WHERE (actor_uri, activity_uri) IN (SELECT actor_uri, uri FROM activities WHERE object_uri = ANY($1))`, uris)
	b.Queue(`DELETE FROM reactions WHERE object_uri = ANY($1)`, uris)
	b.Queue(`DELETE FROM pins WHERE object_uri = ANY($1)`, uris)
	b.Queue(`DELETE FROM stream_objects WHERE object_uri = ANY($1)`, uris)
	b.Queue(`DELETE FROM votes WHERE question_uri = ANY($1)`, uris)
	b.Queue(`DELETE FROM unnamed_recipients WHERE object_uri = ANY($1)`, uris)
	// The activities that carried the objects contain the objects' words, too.
	b.Queue(`UPDATE activities a SET raw = jsonb_set(a.raw, '{object}', g.tombstone::jsonb) FROM unnest($1::text[], $2::text[]) AS g (uri, tombstone)
		WHERE a.object_uri = g.uri AND jsonb_typeof(a.raw -> 'object') IN ('object', 'array') RETURNING a.uri`, uris, tombstones).Query(t.touchRows)
	b.Queue(`UPDATE activities SET raw = jsonb_set(raw, '{instrument}', to_jsonb(object_uri)) WHERE object_uri = ANY($1) AND jsonb_typeof(raw -> 'instrument') IN ('object', 'array')
		RETURNING uri`, uris).Query(t.touchRows)
	b.Queue(`UPDATE activities a SET raw = jsonb_set(a.raw, '{object,object}', g.tombstone::jsonb) FROM unnest($1::text[], $2::text[]) AS g (uri, tombstone)
		WHERE a.raw -> 'object' @> jsonb_build_object('object', jsonb_build_object('id', g.uri)) RETURNING a.uri`, uris, tombstones).Query(t.touchRows)
	t.queueWithdrawal(b, uris, now)
	b.Queue(`UPDATE objects o SET raw = g.tombstone::jsonb, readable = '{}', deleted_at = $3 FROM unnest($1::text[], $2::text[]) AS g (uri, tombstone)
		WHERE o.uri = g.uri AND o.deleted_at IS NULL`, uris, tombstones, now).
		Exec(func(tag pgconn.CommandTag) error { stored = tag.RowsAffected(); return nil })
	err = t.send(ctx, "bury objects", b)
	return stored, err
}
