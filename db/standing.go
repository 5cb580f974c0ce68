package db

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Standing is what stands between the user and an actor, each way. The statuses are those of a
// relationship, or empty.
type Standing struct {
	Following  string                  // of the user's follow
	FollowedBy string                  // of the actor's
	Friendship map[string]Relationship // by type; none where neither of the two asked
	Blocking   bool                    // the user blocks the actor
	BlockedBy  bool
}

// Standing returns what stands between the user and an actor.
func (t *Tx) Standing(ctx context.Context, actor vocab.ID) (s Standing, err error) {
	err = t.row(ctx, "read blocks", `SELECT
		EXISTS (SELECT FROM blocks WHERE digest = $1 AND direction = 'outbound'), EXISTS (SELECT FROM blocks WHERE digest = $1 AND direction = 'inbound')`,
		[]any{digest(actor)}, &s.Blocking, &s.BlockedBy)
	if err != nil {
		return s, err
	}
	all, err := collect[Relationship](ctx, t, "read relationships", `SELECT `+relationshipColumns+` FROM relationships WHERE actor_uri = $1`, actor)
	s.Friendship = map[string]Relationship{}
	for _, r := range all {
		switch r.Type {
		case Following:
			s.Following = r.Status
		case Follower:
			s.FollowedBy = r.Status
		default:
			s.Friendship[r.Type] = r
		}
	}
	return s, err
}

// Blocking is the type under which AllRelationships lists the actors that the user blocks.
const Blocking = "block"

// Ties says which relationships and blocks are listed: all where a member is empty.
type Ties struct {
	Type      string // one of RelationshipTypes, or Blocking
	Status    string // a block is Accepted
	Direction string // of the Offer: follows and blocks have none
}

// AllRelationships returns up to n of the user's relationships and blocks after a place, the newest
// first.
func (t *Tx) AllRelationships(ctx context.Context, of Ties, after *Place, n int) ([]Relationship, error) {
	p := after.orFirst()
	return collect[Relationship](ctx, t, "list all relationships", `SELECT * FROM (
		SELECT `+relationshipColumns+` FROM relationships
		UNION ALL SELECT encode(substring(digest FOR 16), 'hex')::uuid, actor_uri, 'block', 'accepted', activity_uri, created_at, '', '' FROM blocks WHERE direction = 'outbound')
			AS bonds (id, actor_uri, type, status, activity_uri, created_at, direction, host)
		WHERE $1 IN ('', type) AND $2 IN ('', status) AND $3 IN ('', direction) AND (created_at, id) < ($4, $5) ORDER BY created_at DESC, id DESC LIMIT $6`,
		of.Type, of.Status, of.Direction, p.At, p.ID, n)
}
