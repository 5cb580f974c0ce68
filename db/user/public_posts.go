package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// PublicPost is a public object that the user wrote, with the place of its Create.
type PublicPost struct {
	Object
	CreateID uuid.UUID
	Created  time.Time
}

// Place returns the place of the post among the user's public posts.
func (p PublicPost) Place() Place { return Place{At: p.Created, ID: p.CreateID} }

// publicPost holds for an object o that addresses everybody and was not deleted.
var publicPost = `o.deleted_at IS NULL AND ` + publicIn("o.raw")

// ListPublic returns up to n public posts of the user after a place, the newest first. If tag is
// not empty, it returns only posts with this tag, in upper or lower case. It scans at most
// MaxScanned activities. The result "end" is the place of the last scanned activity, nil if the
// scan reached the end before it found n posts.
func (t Posts) ListPublic(ctx context.Context, tag string, after *Place, n int) (posts []PublicPost, end *Place, err error) {
	tags := `'{}'::text[]`
	if tag != "" {
		tags = objectTags
	}
	read := func(after *Place) ([]scannedEntry, error) { return t.scanOutbox(ctx, tags, after) }
	meets := func(e scannedEntry) bool { return e.Fits && (tag == "" || hasAnyTag(e.Tags, tag)) }
	found, end, err := scanEntries(read, meets, after, n)
	if err != nil || len(found) == 0 {
		return nil, end, err
	}
	posts, err = collect[PublicPost](ctx, t.tx, "read public posts", `SELECT o.id, o.uri, o.published, o.raw, o.updated_at, o.deleted_at, o.readable, a.id AS create_id, a.published AS created
		FROM activities a JOIN objects o ON o.uri = a.object_uri WHERE a.id = ANY($1) AND `+publicPost+` ORDER BY a.published DESC, a.id DESC`, found)
	return posts, end, err
}

// scanOutbox reads the next of the user's activities for a scan. Those that created a public
// post have Fits set.
func (t Posts) scanOutbox(ctx context.Context, tags string, after *Place) ([]scannedEntry, error) {
	p := after.orFirst()
	return collect[scannedEntry](ctx, t.tx, "scan outbox", `SELECT a.id, a.published, a.actor_uri AS actor, `+tags+` AS tags, o.uri IS NOT NULL AS fits FROM (
			SELECT id, type, object_uri, actor_uri, published FROM activities
			WHERE direction = 'outbound' AND (published, id) < ($1, $2) ORDER BY published DESC, id DESC LIMIT $3) AS a
		LEFT JOIN objects o ON a.type = '`+vocab.Create+`' AND o.uri = a.object_uri AND `+publicPost+`
		ORDER BY a.published DESC, a.id DESC`, p.At, p.ID, scanChunk)
}
