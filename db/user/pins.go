package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Pin is an object that its author pinned, to be shown first.
type Pin struct {
	Actor    vocab.ID
	Object   vocab.ID
	Activity vocab.ID // the Add
}

// MaxPins limits how many pinned objects of one actor are stored. These are the newest ones.
const MaxPins = 20

// Set pins an object. An object that is pinned already keeps its place. Set removes the actor's
// oldest pins in excess of MaxPins.
func (t Pins) Set(ctx context.Context, p Pin, now time.Time) error {
	t.touched.touch(FeaturedPages)
	_, err := t.execBeside(ctx, "pin object", `INSERT INTO pins (actor_uri, object_uri, activity_uri, pinned_at) VALUES (@actor, @object, @activity, @now)
		ON CONFLICT (actor_uri, object_uri) DO UPDATE SET activity_uri = excluded.activity_uri`,
		named{"actor": p.Actor, "object": p.Object, "activity": p.Activity, "now": now})
	if err != nil {
		return err
	}
	_, err = t.execBeside(ctx, "drop old pins", `DELETE FROM pins WHERE actor_uri = $1 AND object_uri IN
		(SELECT object_uri FROM pins WHERE actor_uri = $1 ORDER BY pinned_at DESC, object_uri OFFSET $2)`, p.Actor, MaxPins)
	return err
}

// List returns the pins of an actor, the newest first.
func (t Pins) List(ctx context.Context, actor vocab.ID) ([]Pin, error) {
	return collect[Pin](ctx, t.tx, "list pins", `SELECT actor_uri AS actor, object_uri AS object, activity_uri AS activity FROM pins WHERE actor_uri = $1 ORDER BY pinned_at DESC, object_uri`, actor)
}

// Remove removes an actor's pin of an object, and reports whether there was one.
func (t Pins) Remove(ctx context.Context, actor, object vocab.ID) (bool, error) {
	t.touched.touch(FeaturedPages)
	n, err := t.execBeside(ctx, "remove pin", `DELETE FROM pins WHERE actor_uri = $1 AND object_uri = $2`, actor, object)
	return n == 1, err
}

// RemoveBy removes the pin that this Add of the actor made, and reports whether there was one.
func (t Pins) RemoveBy(ctx context.Context, activity, actor vocab.ID) (bool, error) {
	t.touched.touch(FeaturedPages)
	n, err := t.execBeside(ctx, "remove pin", `DELETE FROM pins WHERE actor_uri = $1 AND activity_uri = $2`, actor, activity)
	return n > 0, err
}
