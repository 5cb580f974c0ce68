package db

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// HeldObject is an object that the user holds, with what brought it.
type HeldObject struct {
	Object
	Creator vocab.ID        // who sent the Create of it; empty when none came
	Create  json.RawMessage // that Create without its object; nil when none came
	Waits   bool            // it is among the requests
	Copied  bool            // it is an archived post
}

// Bytes is how large its documents are.
func (o HeldObject) Bytes() int { return len(o.Raw) + len(o.Readable) + len(o.Create) }

const (
	heldColumns = `o.id, o.uri, o.published, o.raw, o.updated_at, o.deleted_at, o.readable, coalesce(c.actor_uri, ''), c.raw, coalesce(c.waits, false), false`
	itsCreate   = ` LEFT JOIN LATERAL (SELECT a.actor_uri, a.raw - 'object' AS raw, ` + isRequest + ` AS waits FROM activities a
		WHERE a.object_uri = o.uri AND a.type = '` + vocab.Create + `' ORDER BY a.id LIMIT 1) c ON true`

	// parent is the first thing that an object answers.
	parent = `CASE jsonb_typeof(o.raw -> 'inReplyTo') WHEN 'string' THEN o.raw ->> 'inReplyTo' WHEN 'object' THEN o.raw -> 'inReplyTo' ->> 'id'
		WHEN 'array' THEN coalesce(o.raw -> 'inReplyTo' -> 0 ->> 'id', o.raw -> 'inReplyTo' ->> 0) END`
)

// HeldObject returns the object with this uri, nil when there is none.
func (t *Tx) HeldObject(ctx context.Context, uri vocab.ID) (*HeldObject, error) {
	return one[HeldObject](ctx, t, "read object", `SELECT `+heldColumns+` FROM objects o`+itsCreate+` WHERE o.uri = $1`, uri)
}

// HeldObjects returns those of the objects that the user holds, in the order of their ids in uris;
// when they are large, those up to the first that goes beyond MaxFeed.
func (t *Tx) HeldObjects(ctx context.Context, uris []vocab.ID) (held []HeldObject, err error) {
	err = t.query(ctx, "read objects", upTo(MaxFeed, HeldObject.Bytes, &held), `SELECT `+heldColumns+` FROM objects o`+itsCreate+` WHERE o.uri = ANY($1)
		ORDER BY array_position($1, o.uri)`, texts(uris))
	return held, err
}

// Ancestors returns the object with this uri, what it answers, and so on: up to n, the first of
// the thread first, as far as the chain is here. When they are large, it ends with the first that
// goes beyond MaxFeed.
func (t *Tx) Ancestors(ctx context.Context, uri vocab.ID, n int) (chain []HeldObject, err error) {
	err = t.query(ctx, "read ancestors", upTo(MaxFeed, HeldObject.Bytes, &chain), `WITH RECURSIVE up (uri, parent, height) AS (
			SELECT o.uri, `+parent+`, 1 FROM objects o WHERE o.uri = $1
			UNION ALL SELECT o.uri, `+parent+`, up.height + 1 FROM up JOIN objects o ON o.uri = up.parent WHERE up.height < $2)
			CYCLE uri SET again USING path
		SELECT `+heldColumns+` FROM up JOIN objects o ON o.uri = up.uri`+itsCreate+` WHERE NOT up.again ORDER BY up.height`, uri, n)
	slices.Reverse(chain)
	return chain, err
}

// Answers returns up to n objects that answer any of these, the oldest first. When they are large,
// it ends with the first that goes beyond the bytes.
func (t *Tx) Answers(ctx context.Context, to []vocab.ID, n, bytes int) (answers []HeldObject, err error) {
	err = t.query(ctx, "read answers", upTo(bytes, HeldObject.Bytes, &answers), `SELECT `+heldColumns+` FROM objects o`+itsCreate+`
		WHERE o.raw -> 'inReplyTo' ?| $1 ORDER BY o.published, o.id LIMIT $2`, texts(to), n)
	return answers, err
}

// Responses counts what is here of the responses to an object, without those among the requests.
type Responses struct {
	Object                           vocab.ID
	Replies, Likes, Dislikes, Boosts int
	Liked, Disliked, Boosted         bool // by the user
}

// CountResponses counts the responses to objects; me is the user's actor.
func (t *Tx) CountResponses(ctx context.Context, me vocab.ID, objects []vocab.ID) (map[vocab.ID]Responses, error) {
	rows, err := collect[Responses](ctx, t, "count responses", `SELECT u.uri,
			(SELECT count(*) FROM objects o WHERE o.raw -> 'inReplyTo' ? u.uri
				AND NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = o.uri AND `+isRequest+`)),
			count(*) FILTER (WHERE r.type = '`+vocab.Like+`'), count(*) FILTER (WHERE r.type = '`+vocab.Dislike+`'), count(*) FILTER (WHERE r.type = '`+vocab.Announce+`'),
			coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Like+`'), false), coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Dislike+`'), false),
			coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Announce+`'), false)
		FROM unnest($2::text[]) AS u (uri) LEFT JOIN reactions r ON r.object_uri = u.uri AND r.kind <> '`+Emoji+`' GROUP BY u.uri`, me, texts(objects))
	counts := make(map[vocab.ID]Responses, len(rows))
	for _, r := range rows {
		counts[r.Object] = r
	}
	return counts, err
}
