package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// SearchProgress says how far the search index is complete. The index has all objects up to the
// object with the id Objects. It has their changes by all activities up to the activity with the
// id Activities.
type SearchProgress struct{ Objects, Activities uuid.UUID }

// Unindexed is an object whose words are missing in the index or out of date.
type Unindexed struct {
	ID        uuid.UUID
	URI       vocab.ID
	Published time.Time
	Raw       json.RawMessage
	Readable  json.RawMessage
	Revision  string
}

// Bytes returns the size of the documents of u.
func (u Unindexed) Bytes() int { return len(u.Raw) + len(u.Readable) }

// Indexed is an object with the words that the index stores for it.
type Indexed struct {
	Unindexed
	Words string // the text form of a tsvector
}

const unindexedColumns = `o.id, o.uri, o.published, o.raw, o.readable, o.xmin::text AS revision`

// FindProgress returns how far the index is complete, or nil if the index was not begun.
func (t Search) FindProgress(ctx context.Context) (*SearchProgress, error) {
	return one[SearchProgress](ctx, t.tx, "read progress of index", `SELECT objects, activities FROM search_progress`)
}

// SetProgress stores how far the index is complete.
func (t Search) SetProgress(ctx context.Context, p SearchProgress) error {
	_, err := t.execBeside(ctx, "set progress of index", `INSERT INTO search_progress (objects, activities) VALUES ($1, $2)
		ON CONFLICT (one) DO UPDATE SET objects = excluded.objects, activities = excluded.activities`, p.Objects, p.Activities)
	return err
}

// ListUnindexed returns up to n objects after an id that are not in the index, in the order of
// their ids. It stops after the object with which the documents exceed MaxFeed bytes.
func (t Search) ListUnindexed(ctx context.Context, after uuid.UUID, n int) (out []Unindexed, err error) {
	err = t.query(ctx, "read objects to index", upTo(MaxFeed, Unindexed.Bytes, &out), `SELECT `+unindexedColumns+` FROM objects o LEFT JOIN search_index s ON s.uri = o.uri
		WHERE o.id > $1 AND s.object_id IS DISTINCT FROM o.id ORDER BY o.id LIMIT $2`, after, n)
	return out, err
}

// Edits are the objects that some changes updated or deleted. A change is an activity, or an edit
// of an object, which need not leave an activity. The ids of both are in the order of time.
type Edits struct {
	Objects []vocab.ID
	Last    uuid.UUID // the last of the changes; zero when there were none
	Looked  int       // how many changes ListEdits looked at
}

// ListEdits returns the objects that the next n changes after an id updated or deleted.
func (t Search) ListEdits(ctx context.Context, after uuid.UUID, n int) (Edits, error) {
	e, err := one[Edits](ctx, t.tx, "look for edits", `SELECT coalesce(array_agg(DISTINCT uri) FILTER (WHERE uri IS NOT NULL), '{}') AS objects,
			coalesce((array_agg(id ORDER BY id DESC))[1], '00000000-0000-0000-0000-000000000000'::uuid) AS last, count(*) AS looked
		FROM (SELECT id, uri FROM (
				(SELECT id, CASE WHEN type IN ('`+vocab.Update+`', '`+vocab.Delete+`') THEN object_uri END AS uri FROM activities WHERE id > $1 ORDER BY id LIMIT $2)
				UNION ALL (SELECT changed, uri FROM objects WHERE changed > $1 ORDER BY changed LIMIT $2)) AS changes
			ORDER BY id LIMIT $2) AS looked`, after, n)
	if err != nil {
		return Edits{}, err
	}
	return *e, nil
}

// ListChanged returns the objects with these uris whose words in the index are out of date. It
// stops after the object with which the documents exceed MaxFeed bytes.
func (t Search) ListChanged(ctx context.Context, uris []vocab.ID) (out []Unindexed, err error) {
	err = t.query(ctx, "read objects to index", upTo(MaxFeed, Unindexed.Bytes, &out), `SELECT `+unindexedColumns+` FROM objects o JOIN search_index s ON s.uri = o.uri
		WHERE o.uri = ANY($1) AND s.revision <> o.xmin::text ORDER BY o.id`, texts(uris))
	return out, err
}

// PutIndexed stores words in the index.
func (t Search) PutIndexed(ctx context.Context, all []Indexed) error {
	uris, ids, revisions := make([]string, len(all)), make([]uuid.UUID, len(all)), make([]string, len(all))
	published, words := make([]time.Time, len(all)), make([]string, len(all))
	for n, i := range all {
		uris[n], ids[n], revisions[n], published[n], words[n] = string(i.URI), i.ID, i.Revision, i.Published, i.Words
	}
	_, err := t.execBeside(ctx, "put words into index", `INSERT INTO search_index (uri, object_id, revision, published, words)
		SELECT u, i, r, p, w::tsvector FROM unnest(@uris::text[], @ids::uuid[], @revisions::text[], @published::timestamptz[], @words::text[]) AS x (u, i, r, p, w)
		ON CONFLICT (uri) DO UPDATE SET object_id = excluded.object_id, revision = excluded.revision, published = excluded.published, words = excluded.words`,
		named{"uris": uris, "ids": ids, "revisions": revisions, "published": published, "words": words})
	return err
}

// pruneSearchIndex removes the words of objects that are gone.
func pruneSearchIndex(ctx context.Context, t *tx, _ Pruning, at reached) (did Pruned, next *reached, err error) {
	var last string
	var looked int
	err = t.row(ctx, "prune index", `WITH looked AS (SELECT uri FROM search_index WHERE uri > $1 ORDER BY uri LIMIT $2),
			gone AS (DELETE FROM search_index s USING looked WHERE s.uri = looked.uri AND NOT EXISTS (SELECT FROM objects o WHERE o.uri = s.uri AND o.deleted_at IS NULL)
				AND NOT EXISTS (SELECT FROM archived_posts p WHERE p.object_uri = s.uri))
		SELECT coalesce(max(uri), ''), count(*) FROM looked`, []any{at.uri, pruneBatch}, &last, &looked)
	if looked == pruneBatch {
		next = &reached{uri: last}
	}
	return Pruned{}, next, err
}
