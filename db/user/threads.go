package user

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// HeldObject is a stored object or archived post, with the Create that brought it.
type HeldObject struct {
	Object
	Creator vocab.ID        // the actor of its Create; empty when there is none
	Create  json.RawMessage // that Create without its object; nil when there is none
	Waits   bool            // an activity about it waits among the requests
	Copied  bool            // it is an archived post
}

// AddressingOf returns the addressing of the object, which parsed holds: its own, or that of its
// Create if it has none.
func (o HeldObject) AddressingOf(parsed *vocab.Object) (vocab.Addressing, error) {
	if len(parsed.All()) > 0 || o.Create == nil {
		return parsed.Addressing, nil
	}
	create, err := vocab.ParseDoc(o.Create)
	if err != nil {
		return vocab.Addressing{}, err
	}
	return vocab.AddressingOf(create)
}

// Bytes returns the size of the documents of o.
func (o HeldObject) Bytes() int { return len(o.Raw) + len(o.Readable) + len(o.Create) }

const (
	heldColumns = `o.id, o.uri, o.published, o.raw, o.updated_at, o.deleted_at, o.readable, coalesce(c.actor_uri, '') AS creator, c.raw AS create, coalesce(w.waits, false) AS waits, false AS copied`

	// itsCreate joins the Create of an object o. It also finds out whether o waits among the
	// requests (see itsRequests). The LIMIT keeps PostgreSQL from comparing all activities
	// with all requests.
	itsCreate = ` LEFT JOIN LATERAL (SELECT a.actor_uri, a.raw - 'object' AS raw FROM activities a
		WHERE a.object_uri = o.uri AND a.type = '` + vocab.Create + `' ORDER BY a.id LIMIT 1) c ON true
		LEFT JOIN LATERAL (SELECT true AS waits ` + itsRequests + ` LIMIT 1) w ON true`

	// itsRequests selects the requests about an object o: a Create, or an Announce by the author of
	// o. A request counts even if o came in another way, too, as in Search.FindObjects.
	itsRequests = `FROM activities a WHERE a.object_uri = o.uri AND a.type IN ('` + vocab.Create + `', '` + vocab.Announce + `') AND ` + isRequest

	// parent is the id of the first object that an object answers.
	parent = `CASE jsonb_typeof(o.raw -> 'inReplyTo') WHEN 'string' THEN o.raw ->> 'inReplyTo' WHEN 'object' THEN o.raw -> 'inReplyTo' ->> 'id'
		WHEN 'array' THEN coalesce(o.raw -> 'inReplyTo' -> 0 ->> 'id', o.raw -> 'inReplyTo' ->> 0) END`
)

// answers holds for an object o that answers the object with an id. Handlers decide by the parent
// whether an answer is taken. So no other id in inReplyTo counts, and no key of an object, which
// the operator ? finds, too. An index supports that operator. The parameter id is an SQL
// expression.
func answers(id string) string {
	return `(o.raw -> 'inReplyTo' ? ` + id + ` AND ` + parent + ` = ` + id + `)`
}

// answersAny is answers for the ids of an SQL array.
func answersAny(ids string) string {
	return `(o.raw -> 'inReplyTo' ?| ` + ids + ` AND ` + parent + ` = ANY(` + ids + `))`
}

// Find returns an object by its uri, or nil if there is none.
func (t Threads) Find(ctx context.Context, uri vocab.ID) (*HeldObject, error) {
	return one[HeldObject](ctx, t.tx, "read object", `SELECT `+heldColumns+` FROM objects o`+itsCreate+` WHERE o.uri = $1`, uri)
}

// FindAll returns the stored objects with these uris, in the order of the parameter uris. It
// stops after the object with which the documents exceed MaxFeed bytes.
func (t Threads) FindAll(ctx context.Context, uris []vocab.ID) (held []HeldObject, err error) {
	err = t.query(ctx, "read objects", upTo(MaxFeed, HeldObject.Bytes, &held), `SELECT `+heldColumns+` FROM objects o`+itsCreate+` WHERE o.uri = ANY($1)
		ORDER BY array_position($1, o.uri)`, texts(uris))
	return held, err
}

// ListAncestors returns the object whose id is the parameter uri, the object that it answers, and
// so on, as far as they are stored and up to n objects. They are sorted from the top of the
// thread down. If the documents exceed MaxFeed bytes, the objects nearest to the top are left
// out.
func (t Threads) ListAncestors(ctx context.Context, uri vocab.ID, n int) (chain []HeldObject, err error) {
	err = t.query(ctx, "read ancestors", upTo(MaxFeed, HeldObject.Bytes, &chain), `WITH RECURSIVE up (uri, parent, height) AS (
			SELECT o.uri, `+parent+`, 1 FROM objects o WHERE o.uri = $1
			UNION ALL SELECT o.uri, `+parent+`, up.height + 1 FROM up JOIN objects o ON o.uri = up.parent WHERE up.height < $2)
			CYCLE uri SET again USING path
		SELECT `+heldColumns+` FROM up JOIN objects o ON o.uri = up.uri`+itsCreate+` WHERE NOT up.again ORDER BY up.height`, uri, n)
	slices.Reverse(chain)
	return chain, err
}

// ListAnswers returns up to n answers to any of these objects, the oldest first. It stops after
// the answer with which the documents exceed a number of bytes, but returns at least two answers
// if there are two.
func (t Threads) ListAnswers(ctx context.Context, to []vocab.ID, n, bytes int) (found []HeldObject, err error) {
	err = t.query(ctx, "read answers", upTo(bytes, HeldObject.Bytes, &found), `SELECT `+heldColumns+` FROM objects o`+itsCreate+`
		WHERE `+answersAny("$1")+` ORDER BY o.published, o.id LIMIT $2`, texts(to), n)
	return found, err
}

// Responses counts the stored responses to an object, except those among the requests.
type Responses struct {
	Object                           vocab.ID
	Replies, Likes, Dislikes, Boosts int
	Liked, Disliked, Boosted         bool // the user gave this response
}

// CountResponses counts the responses to objects. The parameter me is the user's actor.
func (t Threads) CountResponses(ctx context.Context, me vocab.ID, objects []vocab.ID) (map[vocab.ID]Responses, error) {
	rows, err := collect[Responses](ctx, t.tx, "count responses", `SELECT u.uri AS object,
			(SELECT count(*) FROM objects o WHERE `+answers("u.uri")+`
				AND NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = o.uri AND `+isRequest+`)) AS replies,
			count(*) FILTER (WHERE r.type = '`+vocab.Like+`') AS likes, count(*) FILTER (WHERE r.type = '`+vocab.Dislike+`') AS dislikes, count(*) FILTER (WHERE r.type = '`+vocab.Announce+`') AS boosts,
			coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Like+`'), false) AS liked, coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Dislike+`'), false) AS disliked,
			coalesce(bool_or(r.actor_uri = $1 AND r.type = '`+vocab.Announce+`'), false) AS boosted
		FROM unnest($2::text[]) AS u (uri) LEFT JOIN reactions r ON r.object_uri = u.uri AND r.kind <> '`+Emoji+`' GROUP BY u.uri`, me, texts(objects))
	counts := make(map[vocab.ID]Responses, len(rows))
	for _, r := range rows {
		counts[r.Object] = r
	}
	return counts, err
}
