package user

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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

// Bound limits each statement of the transaction to 3 s. Otherwise a search for a word that
// nearly every object has could take all of the database's time for the user.
func (t Search) Bound(ctx context.Context) error {
	_, err := t.execBeside(ctx, "bound search", `SET LOCAL statement_timeout = '3s'`)
	return err
}

// FindObjects returns up to n objects and archived posts after a place that match a query, the
// newest first. The query is a tsquery in PostgreSQL's text form. Deleted objects are left out.
// If requests is false, objects that wait among the requests are left out, too.
func (t Search) FindObjects(ctx context.Context, query string, requests bool, after *Place, n int) ([]Found, error) {
	p := after.orFirst()
	found, err := collect[Found](ctx, t.tx, "search objects", `SELECT s.uri, s.published, s.object_id AS id FROM search_index s
		WHERE s.words @@ @query::tsquery AND (s.published, s.object_id) < (@at, @id)
			AND (EXISTS (SELECT FROM objects o WHERE o.uri = s.uri AND o.deleted_at IS NULL) OR EXISTS (SELECT FROM archived_posts p WHERE p.object_uri = s.uri))
			AND (@requests OR NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = s.uri AND `+isRequest+`))
		ORDER BY s.published DESC, s.object_id DESC LIMIT @n`, named{"query": query, "at": p.At, "id": p.ID, "requests": requests, "n": n})
	return found, explainTimeout(err)
}

// FindActors returns up to n actors of which the user has a copy. It returns actors whose handle
// and name together contain each of the words, in upper or lower case. The parameter "words" must
// be in lower case. An actor whose username is one of the words comes before the others. If
// requests is false, senders of requests are left out. The names are compared here, because the
// databases have the locale C, in which only the letters A to Z have a case.
func (t Search) FindActors(ctx context.Context, words []string, requests bool, n int) ([]FoundActor, error) {
	var named, others []vocab.ID
	err := t.query(ctx, "search actors", func(rows pgx.Rows) error {
		for rows.Next() {
			var uri vocab.ID
			var username, name string
			if err := rows.Scan(&uri, &username, &name); err != nil {
				return err
			}
			username = strings.ToLower(username)
			called := username + "@" + uri.Host() + " " + strings.ToLower(name)
			switch lacks := func(word string) bool { return !strings.Contains(called, word) }; {
			case slices.ContainsFunc(words, lacks):
			case slices.Contains(words, username) && len(named) < n:
				named = append(named, uri)
			case len(others) < n:
				others = append(others, uri)
			}
		}
		return rows.Err()
	}, `SELECT uri, preferred_username, coalesce(raw ->> 'name', '') FROM actors a
		WHERE $1 OR NOT EXISTS (SELECT FROM requests q WHERE q.actor_uri = a.uri) ORDER BY preferred_username, uri`, requests)
	if err != nil {
		return nil, explainTimeout(err)
	}
	all := append(named, others...)
	return collect[FoundActor](ctx, t.tx, "read found actors", `SELECT uri, raw FROM unnest($1::text[]) WITH ORDINALITY AS f (uri, place) JOIN actors USING (uri) ORDER BY place`,
		texts(all[:min(n, len(all))]))
}

// explainTimeout turns a timeout into an error that tells the user how to search instead.
func explainTimeout(err error) error {
	if postgres.HasCode(err, "57014") {
		return fault.Wrap(fault.Unprocessable, "too much has these words: search for more of them, or for rarer ones", err).WithCode("search_too_broad")
	}
	return err
}
