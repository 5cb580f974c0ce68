package db

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// PublicObject is an object that is for everybody, as far as collections list it.
type PublicObject struct {
	ID        uuid.UUID
	URI       vocab.ID
	Published time.Time
	By        json.RawMessage // a document with its attributedTo
}

// maxPublicThread and maxPublicDepth bound how much of a thread is read for strangers.
const (
	maxPublicThread = 1000
	maxPublicDepth  = 40
)

const publicColumns = `o.id, o.uri, o.published, jsonb_build_object('attributedTo', o.raw -> 'attributedTo')`

// listedAnswer holds for an object o that is for everybody, and that nobody wrote that the user
// blocks.
var listedAnswer = publicIn("o.raw") + ` AND o.deleted_at IS NULL
	AND NOT EXISTS (SELECT FROM jsonb_path_query(o.raw, '$.attributedTo[*]') AS by JOIN blocks b ON b.direction = 'outbound'
		AND b.digest = sha256(convert_to(coalesce(by ->> 'id', by #>> '{}'), 'UTF8')))`

// PublicAnswers returns up to n public objects after a place that answer an object, the oldest
// first.
func (t *Tx) PublicAnswers(ctx context.Context, to vocab.ID, after *Place, n int) ([]PublicObject, error) {
	p := after.orOldest()
	return collect[PublicObject](ctx, t, "list public answers", `SELECT `+publicColumns+` FROM objects o
		WHERE o.raw -> 'inReplyTo' ? $1 AND `+listedAnswer+` AND (o.published, o.id) > ($2, $3) ORDER BY o.published, o.id LIMIT $4`, to, p.At, p.ID, n)
}

// PublicThread returns up to n public objects after a place out of the thread that an object
// begins, the oldest first (FEP-f228). Nothing is in it that answers what is not public.
func (t *Tx) PublicThread(ctx context.Context, root vocab.ID, after *Place, n int) ([]PublicObject, error) {
	p := after.orOldest()
	return collect[PublicObject](ctx, t, "list public thread", fmt.Sprintf(`WITH RECURSIVE down (uri, depth) AS (
			SELECT $1::text, 0
			UNION SELECT o.uri, down.depth + 1 FROM down JOIN objects o ON o.raw -> 'inReplyTo' ? down.uri WHERE down.depth < %d AND `+listedAnswer+`)
		SELECT `+publicColumns+` FROM (SELECT DISTINCT uri FROM (SELECT uri FROM down LIMIT %d) bounded) few JOIN objects o ON o.uri = few.uri
		WHERE (o.published, o.id) > ($2, $3) ORDER BY o.published, o.id LIMIT $4`, maxPublicDepth, maxPublicThread), root, p.At, p.ID, n)
}
