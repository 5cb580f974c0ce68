package user

import (
	"context"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Standing has the relationships and blocks between the user and an actor, in both directions. A
// status is the status of a Relationship, or empty if there is no such relationship.
type Standing struct {
	Following  string                  // the status of the user's follow
	FollowedBy string                  // the status of the actor's follow
	Friendship map[string]Relationship // by type; a type is missing if neither side asked
	Blocking   bool                    // the user blocks the actor
	BlockedBy  bool
}

// FindStanding returns the standing between the user and an actor.
func (t Relationships) FindStanding(ctx context.Context, actor vocab.ID) (s Standing, err error) {
	err = t.row(ctx, "read blocks", `SELECT
		EXISTS (SELECT FROM blocks WHERE digest = $1 AND direction = 'outbound'), EXISTS (SELECT FROM blocks WHERE digest = $1 AND direction = 'inbound')`,
		[]any{schema.Digest(actor)}, &s.Blocking, &s.BlockedBy)
	if err != nil {
		return s, err
	}
	all, err := t.FindAll(ctx, actor)
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

// Blocking is the type under which ListAll lists the actors that the user blocks.
const Blocking = "block"

// Ties selects relationships and blocks. An empty field selects all.
type Ties struct {
	Type      string // one of RelationshipTypes, or Blocking
	Status    string // blocks count as Accepted
	Direction string // of the Offer; follows and blocks have none
}

// ListAll returns up to n of the user's relationships and blocks after a place, the newest
// first.
func (t Relationships) ListAll(ctx context.Context, of Ties, after *Place, n int) ([]Relationship, error) {
	p := after.orFirst()
	return collect[Relationship](ctx, t.tx, "list all relationships", `SELECT * FROM (
		SELECT `+relationshipColumns+` FROM relationships
		UNION ALL SELECT encode(substring(digest FOR 16), 'hex')::uuid, actor_uri, 'block', 'accepted', activity_uri, created_at, '', '' FROM blocks WHERE direction = 'outbound') AS bonds
		WHERE @type IN ('', type) AND @status IN ('', status) AND @direction IN ('', direction) AND (created_at, id) < (@at, @id) ORDER BY created_at DESC, id DESC LIMIT @n`,
		named{"type": of.Type, "status": of.Status, "direction": of.Direction, "at": p.At, "id": p.ID, "n": n})
}
