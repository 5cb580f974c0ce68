package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Block says that the user blocks an actor (Outbound), or that an actor blocks the user
// (Inbound).
type Block struct {
	Actor     vocab.ID
	Direction string
	Activity  vocab.ID // the Block activity
}

// Add stores a block, in place of an existing one, and removes the actor from all groups. Before
// a transaction adds an Outbound block, it must call ChangeAudience. This call is unnecessary
// only while nothing else uses the database (see TakeOverBlocks). After the call the transaction
// sees all deliveries to the actor that other transactions have stored, and can withdraw them. No
// other transaction adds deliveries to the actor before this one commits.
func (t Blocks) Add(ctx context.Context, b Block, now time.Time) error {
	_, err := t.exec(ctx, "add block", `INSERT INTO blocks (digest, direction, actor_uri, activity_uri, created_at) VALUES (@digest, @direction, @actor, @activity, @now)
		ON CONFLICT (digest, direction) DO UPDATE SET actor_uri = excluded.actor_uri, activity_uri = excluded.activity_uri, created_at = excluded.created_at`,
		named{"digest": schema.Digest(b.Actor), "direction": b.Direction, "actor": b.Actor, "activity": b.Activity, "now": now})
	if err != nil {
		return err
	}
	return t.all.Groups.LeaveAll(ctx, b.Actor)
}

// Find returns the block between the user and the actor in one direction, or nil if there is no
// such block.
func (t Blocks) Find(ctx context.Context, direction string, actor vocab.ID) (*Block, error) {
	return one[Block](ctx, t.tx, "read block", `SELECT actor_uri AS actor, direction, activity_uri AS activity FROM blocks WHERE digest = $1 AND direction = $2`, schema.Digest(actor), direction)
}

// Remove removes a block and reports whether there was one.
func (t Blocks) Remove(ctx context.Context, direction string, actor vocab.ID) (bool, error) {
	n, err := t.exec(ctx, "remove block", `DELETE FROM blocks WHERE digest = $1 AND direction = $2`, schema.Digest(actor), direction)
	return n == 1, err
}

const blocked = `SELECT digest FROM blocks WHERE direction = 'outbound' AND digest = ANY($1)`

// FindAmong returns which of the actors the user blocks. The keys of the map are the ids as
// given.
func (t Blocks) FindAmong(ctx context.Context, actors []vocab.ID) (map[vocab.ID]bool, error) {
	if known := t.ahead.blockedOf(actors); known != nil {
		return known, nil
	}
	var found [][]byte
	if err := t.query(ctx, "read blocks", column(&found), blocked, digests(actors)); err != nil {
		return nil, err
	}
	return having(actors, found), nil
}

// having reports for each id whether its digest is in found.
func having(ids []vocab.ID, found [][]byte) map[vocab.ID]bool {
	there := map[string]bool{}
	for _, d := range found {
		there[string(d)] = true
	}
	has := map[vocab.ID]bool{}
	for _, id := range ids {
		has[id] = there[string(schema.Digest(id))]
	}
	return has
}

// LeaveFeed removes from the feed the activities of an actor, and all activities about these
// objects.
func (t Blocks) LeaveFeed(ctx context.Context, actor vocab.ID, objects []vocab.ID) error {
	_, err := t.exec(ctx, "remove from feed", `DELETE FROM feed WHERE actor_uri = $1 OR (actor_uri, activity_uri) IN
		(SELECT actor_uri, uri FROM activities WHERE object_uri = ANY($2))`, actor, texts(objects))
	return err
}
