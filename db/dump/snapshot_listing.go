package dump

import (
	"context"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Listing is a list of documents or ids from a user's database, in a form for other programs.
type Listing struct {
	Name  string
	table string // if an older database lacks this table, the list is empty
	query string // selects the items of the list; each row is one JSON value
}

// Listings returns the lists that an export of a user has. Activities have no hidden recipients
// (bto and bcc), and each stored object in them has its current version.
func Listings() []Listing {
	return []Listing{
		{"outbox", "activities", `SELECT (CASE WHEN o.uri IS NULL THEN a.raw ELSE jsonb_set(a.raw, '{object}', o.raw - '{@context,proof,bto,bcc}'::text[]) END
			- '{@context,proof,bto,bcc}'::text[])::text FROM activities a
			LEFT JOIN objects o ON jsonb_typeof(a.raw -> 'object') = 'object' AND o.uri = a.object_uri
			WHERE a.direction = 'outbound' AND $1 <> '' ORDER BY a.published, a.id`},
		{"followers", "relationships", `SELECT to_json(actor_uri)::text FROM relationships
			WHERE type = 'follower' AND status = 'accepted' AND $1 <> '' ORDER BY created_at, id`},
		{"following", "relationships", `SELECT to_json(actor_uri)::text FROM relationships
			WHERE type = 'following' AND status = 'accepted' AND $1 <> '' ORDER BY created_at, id`},
		{"likes", "reactions", `SELECT to_json(object_uri)::text FROM reactions WHERE actor_uri = $1 AND type = '` + vocab.Like + `' ORDER BY created_at, object_uri`},
		{"blocks", "blocks", `SELECT to_json(actor_uri)::text FROM blocks WHERE direction = 'outbound' AND $1 <> '' ORDER BY created_at, actor_uri`},
		{"featured", "pins", `SELECT to_json(object_uri)::text FROM pins WHERE actor_uri = $1 ORDER BY pinned_at DESC, object_uri`},
	}
}

// List calls visit for each item of one of the user's lists. The parameter me is the user's
// actor. A second call with the same snapshot visits the same items in the same order. visit must
// not keep item.
func (s *Snapshot) List(ctx context.Context, l Listing, me vocab.ID, visit func(item []byte) error) error {
	if s.Shape.table(l.table) == nil {
		return nil
	}
	rows, err := s.tx.Query(ctx, l.query, me)
	if err != nil {
		return postgres.Fault("list "+l.Name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := visit(rows.RawValues()[0]); err != nil {
			return err
		}
	}
	return postgres.Fault("list "+l.Name, rows.Err())
}
