package user

import (
	"context"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ListKnown returns all actors that the database names, except the actor me. The parameter
// version is the version of the database's schema.
func (t Actors) ListKnown(ctx context.Context, version int, me vocab.ID) ([]schema.KnownActor, error) {
	return collect[schema.KnownActor](ctx, t.tx, "list actors", schema.KnownActors(version), me)
}

// idleActors reports for each of the actors $1 whether a user's database holds nothing of it.
var idleActors = `WITH few AS MATERIALIZED (SELECT k.uri FROM unnest($1::text[]) AS k (uri) WHERE ` + schema.HeldNowhere("k.uri", "") + `),
	held AS MATERIALIZED (` + schema.HeldElsewhere("few") + `)
	SELECT k.uri, k.uri IN (SELECT uri FROM few EXCEPT SELECT uri FROM held) AS idle FROM unnest($1::text[]) AS k (uri)`

// DivideIdle divides actors into idle ones, of which the database holds nothing, and held ones.
func (t Actors) DivideIdle(ctx context.Context, actors []vocab.ID) (idle, held []string, err error) {
	type row struct {
		URI  string
		Idle bool
	}
	rows, err := collect[row](ctx, t.tx, "look for what is of actors", idleActors, texts(actors))
	for _, r := range rows {
		if r.Idle {
			idle = append(idle, r.URI)
		} else {
			held = append(held, r.URI)
		}
	}
	return idle, held, err
}
