package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Found is an object that a search found.
type Found struct {
	URI       vocab.ID
	Published time.Time
	ID        uuid.UUID
}

// FoundActor is an actor that a search found.
type FoundActor struct {
	URI vocab.ID
	Raw json.RawMessage
}

// Bound limits each statement of the transaction to 3 s, because a search for a word that
// nearly every object has must not take all of the database's time for the user.
func (t Search) Bound(ctx context.Context) error {
	_, err := t.execBeside(ctx, "bound search", `SET LOCAL statement_timeout = '3s'`)
	return err
}

// FindObjects returns up to n objects and archived posts after a place that match a query, the
// newest first. The query is a tsquery in PostgreSQL's text form. Deleted objects are left out.
// If requests is false, objects that wait among the requests are left out, too.
func (t Search) FindObjects(ctx context.Context, query string, requests bool, after *Place, n int) ([]Found, error) {
	p := after.orFirst()
	found, err := collect[Found](ctx, t.tx, "search objects", `SELECT s.uri, s.published, s.object_id FROM search_index s
		WHERE s.words @@ $1::tsquery AND (s.published, s.object_id) < ($2, $3)
			AND (EXISTS (SELECT FROM objects o WHERE o.uri = s.uri AND o.deleted_at IS NULL) OR EXISTS (SELECT FROM archived_posts p WHERE p.object_uri = s.uri))
			AND ($4 OR NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = s.uri AND `+isRequest+`))
		ORDER BY s.published DESC, s.object_id DESC LIMIT $5`, query, p.At, p.ID, requests, n)
	return found, explainTimeout(err)
}

// FindActors returns up to n actors of which the user has a copy. It returns actors whose handle
// and name together contain each of the texts. The texts must be in lower case. The case of the
// letters A to Z does not matter in handles and names. If requests is false, senders of requests
// are left out.
func (t Search) FindActors(ctx context.Context, texts []string, requests bool, n int) ([]FoundActor, error) {
	found, err := collect[FoundActor](ctx, t.tx, "search actors", `SELECT uri, raw FROM (
			SELECT uri, raw, preferred_username, lower(preferred_username || '@' || split_part(uri, '/', 3) || ' ' || coalesce(raw ->> 'name', '')) AS called FROM actors) AS x
		WHERE NOT EXISTS (SELECT FROM unnest($1::text[]) AS w WHERE position(w IN called) = 0)
			AND ($2 OR NOT EXISTS (SELECT FROM requests q WHERE q.actor_uri = x.uri))
		ORDER BY lower(preferred_username) = ANY($1) DESC, preferred_username, uri LIMIT $3`, texts, requests, n)
	return found, explainTimeout(err)
}

// explainTimeout turns a timeout into an error that tells the user how to search instead.
func explainTimeout(err error) error {
	if postgres.HasCode(err, "57014") {
		return fault.Wrap(fault.Unprocessable, "too much has these words: search for more of them, or for rarer ones", err).WithCode("search_too_broad")
	}
	return err
}
