package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Pin is an object that its author shows first.
type Pin struct {
	Actor    vocab.ID
	Object   vocab.ID
	Activity vocab.ID // the Add
}

// MaxPins bounds how many objects of one actor are pinned; the newest are kept.
const MaxPins = 20

// SetPin pins an object. One that is pinned keeps its place.
func (t *Tx) SetPin(ctx context.Context, p Pin, now time.Time) error {
	t.touched.touch(FeaturedPages)
	_, err := t.execBeside(ctx, "pin object", `INSERT INTO pins (actor_uri, object_uri, activity_uri, pinned_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (actor_uri, object_uri) DO UPDATE SET activity_uri = excluded.activity_uri`, p.Actor, p.Object, p.Activity, now)
	if err != nil {
		return err
	}
	_, err = t.execBeside(ctx, "drop old pins", `DELETE FROM pins WHERE actor_uri = $1 AND object_uri IN
		(SELECT object_uri FROM pins WHERE actor_uri = $1 ORDER BY pinned_at DESC, object_uri OFFSET $2)`, p.Actor, MaxPins)
	return err
}

// Pins returns the objects that an actor pinned, those pinned last first.
func (t *Tx) Pins(ctx context.Context, actor vocab.ID) ([]Pin, error) {
	return collect[Pin](ctx, t, "list pins", `SELECT actor_uri, object_uri, activity_uri FROM pins WHERE actor_uri = $1 ORDER BY pinned_at DESC, object_uri`, actor)
}

// RemovePin takes back that the actor pinned the object, and tells whether it had.
func (t *Tx) RemovePin(ctx context.Context, actor, object vocab.ID) (bool, error) {
	t.touched.touch(FeaturedPages)
	n, err := t.execBeside(ctx, "remove pin", `DELETE FROM pins WHERE actor_uri = $1 AND object_uri = $2`, actor, object)
	return n == 1, err
}

// RemovePinBy removes the pin that this Add of the actor made, and tells whether there was one.
func (t *Tx) RemovePinBy(ctx context.Context, activity, actor vocab.ID) (bool, error) {
	t.touched.touch(FeaturedPages)
	n, err := t.execBeside(ctx, "remove pin", `DELETE FROM pins WHERE actor_uri = $1 AND activity_uri = $2`, actor, activity)
	return n > 0, err
}
