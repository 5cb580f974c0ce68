package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The kinds of a reaction: an actor has at most one of each to an object.
const (
	Review   = "review"   // Like or Dislike
	Announce = "announce" // a boost
)

// Reaction is what an actor thinks of an object.
type Reaction struct {
	Object   vocab.ID
	Actor    vocab.ID
	Kind     string
	Type     string
	Activity vocab.ID
}

// SetReaction keeps a reaction in place of the one that the actor had of this kind, and tells whether it is another type
// of reaction than before, or the first.
func (t *Tx) SetReaction(ctx context.Context, r Reaction, now time.Time) (changed bool, err error) {
	before, err := t.Reaction(ctx, r.Object, r.Kind, r.Actor)
	if err != nil {
		return false, err
	}
	_, err = t.exec(ctx, "set reaction", `INSERT INTO reactions (object_uri, actor_uri, kind, type, activity_uri, created_at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (object_uri, kind, actor_uri) DO UPDATE SET type = excluded.type, activity_uri = excluded.activity_uri, created_at = excluded.created_at`,
		r.Object, r.Actor, r.Kind, r.Type, r.Activity, now)
	return before == nil || before.Type != r.Type, err
}

const reactionColumns = `object_uri, actor_uri, kind, type, activity_uri`

// Reaction returns the reaction of a kind that the actor has to the object, nil when it has none.
func (t *Tx) Reaction(ctx context.Context, object vocab.ID, kind string, actor vocab.ID) (*Reaction, error) {
	return one[Reaction](ctx, t, "read reaction", `SELECT `+reactionColumns+` FROM reactions
		WHERE object_uri = $1 AND kind = $2 AND actor_uri = $3`, object, kind, actor)
}

// RemoveReaction removes the reaction that this activity of the actor made, and tells whether there was one.
func (t *Tx) RemoveReaction(ctx context.Context, activity, actor vocab.ID) (bool, error) {
	n, err := t.exec(ctx, "remove reaction", `DELETE FROM reactions WHERE activity_uri = $1 AND actor_uri = $2`, activity, actor)
	return n > 0, err
}
