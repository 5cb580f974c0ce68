package db

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Standing is what stands between the user and an actor, each way. The statuses are those of a
// relationship, or empty.
type Standing struct {
	Following  string // of the user's follow
	FollowedBy string // of the actor's
	Blocking   bool   // the user blocks the actor
	BlockedBy  bool
}

// Standing returns what stands between the user and an actor.
func (t *Tx) Standing(ctx context.Context, actor vocab.ID) (s Standing, err error) {
	err = t.row(ctx, "read what stands between user and actor", `SELECT
		coalesce((SELECT status FROM relationships WHERE actor_uri = $1 AND type = 'following' AND relation = ''), ''),
		coalesce((SELECT status FROM relationships WHERE actor_uri = $1 AND type = 'follower' AND relation = ''), ''),
		EXISTS (SELECT FROM blocks WHERE digest = $2 AND direction = 'outbound'), EXISTS (SELECT FROM blocks WHERE digest = $2 AND direction = 'inbound')`,
		[]any{string(actor), digest(actor)}, &s.Following, &s.FollowedBy, &s.Blocking, &s.BlockedBy)
	return s, err
}

// Blocking is the type under which AllRelationships lists the actors that the user blocks.
const Blocking = "block"

// AllRelationships returns up to n follows and blocks of the user's after a place, the newest
// first: of one type and one status, or of all where these are empty. A block is accepted.
func (t *Tx) AllRelationships(ctx context.Context, kind, status string, after *Place, n int) ([]Relationship, error) {
	p := after.orFirst()
	return collect[Relationship](ctx, t, "list all relationships", `SELECT `+relationshipColumns+` FROM (
		SELECT `+relationshipColumns+` FROM relationships WHERE relation = ''
		UNION ALL SELECT encode(substring(digest FOR 16), 'hex')::uuid, actor_uri, 'block', 'accepted', activity_uri, created_at FROM blocks WHERE direction = 'outbound') AS bonds
		WHERE $1 IN ('', type) AND $2 IN ('', status) AND (created_at, id) < ($3, $4) ORDER BY created_at DESC, id DESC LIMIT $5`, kind, status, p.At, p.ID, n)
}
