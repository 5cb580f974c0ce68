package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Block is that the user blocks an actor (Outbound), or an actor the user (Inbound).
type Block struct {
	Actor     vocab.ID
	Direction string
	Activity  vocab.ID // the Block that made it
}

// AddBlock keeps a block, in place of the one that is there, and takes the actor out of all
// groups. A transaction that adds one by the user has asked for ChangeAudience: what slipped in
// before is there to be ended, and nothing slips in after.
func (t *Tx) AddBlock(ctx context.Context, b Block, now time.Time) error {
	_, err := t.exec(ctx, "add block", `INSERT INTO blocks (digest, direction, actor_uri, activity_uri, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (digest, direction) DO UPDATE SET actor_uri = excluded.actor_uri, activity_uri = excluded.activity_uri, created_at = excluded.created_at`,
		digest(b.Actor), b.Direction, b.Actor, b.Activity, now)
	if err != nil {
		return err
	}
	return t.LeaveGroups(ctx, b.Actor)
}

// Block returns the block of that direction between the user and the actor, nil when there is
// none.
func (t *Tx) Block(ctx context.Context, direction string, actor vocab.ID) (*Block, error) {
	return one[Block](ctx, t, "read block", `SELECT actor_uri, direction, activity_uri FROM blocks WHERE digest = $1 AND direction = $2`, digest(actor), direction)
}

// RemoveBlock removes a block and tells whether there was one.
func (t *Tx) RemoveBlock(ctx context.Context, direction string, actor vocab.ID) (bool, error) {
	n, err := t.exec(ctx, "remove block", `DELETE FROM blocks WHERE digest = $1 AND direction = $2`, digest(actor), direction)
	return n == 1, err
}

const blocked = `SELECT digest FROM blocks WHERE direction = 'outbound' AND digest = ANY($1)`

// Blocked returns which of the actors the user blocks, as they were asked for.
func (t *Tx) Blocked(ctx context.Context, actors []vocab.ID) (map[vocab.ID]bool, error) {
	if known := t.ahead.blockedOf(actors); known != nil {
		return known, nil
	}
	var found [][]byte
	if err := t.query(ctx, "read blocks", column(&found), blocked, digests(actors)); err != nil {
		return nil, err
	}
	return having(actors, found), nil
}

// having tells of each id whether its digest is among these.
func having(ids []vocab.ID, found [][]byte) map[vocab.ID]bool {
	there := map[string]bool{}
	for _, d := range found {
		there[string(d)] = true
	}
	has := map[vocab.ID]bool{}
	for _, id := range ids {
		has[id] = there[string(digest(id))]
	}
	return has
}

// LeaveFeed takes out of the feed what an actor wrote or passed on, and what others passed on of
// these objects.
func (t *Tx) LeaveFeed(ctx context.Context, actor vocab.ID, objects []vocab.ID) error {
	_, err := t.exec(ctx, "remove from feed", `DELETE FROM feed WHERE actor_uri = $1 OR (actor_uri, activity_uri) IN
		(SELECT actor_uri, uri FROM activities WHERE object_uri = ANY($2))`, actor, texts(objects))
	return err
}
