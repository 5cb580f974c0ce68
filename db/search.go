package db

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

// BoundSearch lets no statement of the transaction take long: a word that nearly every object has
// is not worth all the user's time.
func (t *Tx) BoundSearch(ctx context.Context) error {
	_, err := t.execBeside(ctx, "bound search", `SET LOCAL statement_timeout = '3s'`)
	return err
}

// SearchObjects returns up to n living objects and archived posts after a place that a query
// matches, the newest first. The query is a tsquery as PostgreSQL reads it. Those that wait among
// the requests are among them only when they are asked for.
func (t *Tx) SearchObjects(ctx context.Context, query string, requests bool, after *Place, n int) ([]Found, error) {
	p := after.orFirst()
	found, err := collect[Found](ctx, t, "search objects", `SELECT s.uri, s.published, s.object_id FROM search_index s
		WHERE s.words @@ $1::tsquery AND (s.published, s.object_id) < ($2, $3)
			AND (EXISTS (SELECT FROM objects o WHERE o.uri = s.uri AND o.deleted_at IS NULL) OR EXISTS (SELECT FROM archived_posts p WHERE p.object_uri = s.uri))
			AND ($4 OR NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = s.uri AND `+isRequest+`))
		ORDER BY s.published DESC, s.object_id DESC LIMIT $5`, query, p.At, p.ID, requests, n)
	return found, explainTimeout(err)
}

// SearchActors returns up to n of the actors that the user knows, in whose handle or name each of
// these texts stands: lower case, as far as that is known of the letters of the alphabet. Senders
// of requests are among them only when they are asked for.
func (t *Tx) SearchActors(ctx context.Context, texts []string, requests bool, n int) ([]FoundActor, error) {
	found, err := collect[FoundActor](ctx, t, "search actors", `SELECT uri, raw FROM (
			SELECT uri, raw, preferred_username, lower(preferred_username || '@' || split_part(uri, '/', 3) || ' ' || coalesce(raw ->> 'name', '')) AS called FROM actors) AS x
		WHERE NOT EXISTS (SELECT FROM unnest($1::text[]) AS w WHERE position(w IN called) = 0)
			AND ($2 OR NOT EXISTS (SELECT FROM requests q WHERE q.actor_uri = x.uri))
		ORDER BY lower(preferred_username) = ANY($1) DESC, preferred_username, uri LIMIT $3`, texts, requests, n)
	return found, explainTimeout(err)
}

// explainTimeout says what can be done about a search that took too long.
func explainTimeout(err error) error {
	if postgres.HasCode(err, "57014") {
		return fault.Wrap(fault.Unprocessable, "too much has these words: search for more of them, or for rarer ones", err).WithCode("search_too_broad")
	}
	return err
}
