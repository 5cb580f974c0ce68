package user

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The kinds of a reaction. An actor has at most one Review and one Announce for an object, and
// one Emoji for each emoji.
const (
	Review   = "review"   // Like or Dislike
	Announce = "announce" // a boost
	Emoji    = "emoji"    // EmojiReact, or a Like with an emoji
)

// Reaction is an actor's reaction to an object.
type Reaction struct {
	Object   vocab.ID
	Actor    vocab.ID
	Kind     string
	Emoji    string // set if Kind is Emoji
	Type     string
	Activity vocab.ID
}

// Set stores a reaction in place of the actor's earlier one of this kind and emoji.
func (t Reactions) Set(ctx context.Context, r Reaction, now time.Time) error {
	t.unsent.react(reactionRow{r, now})
	t.touched.touch(0, r.Object)
	return t.countRow(ctx, 0)
}

const reactionColumns = `object_uri AS object, actor_uri AS actor, kind, emoji, type, activity_uri AS activity`

// Find returns the stored reaction that has the same object, actor, kind and emoji as the
// parameter "like". It returns nil when there is none.
func (t Reactions) Find(ctx context.Context, like Reaction) (*Reaction, error) {
	return one[Reaction](ctx, t.tx, "read reaction", `SELECT `+reactionColumns+` FROM reactions
		WHERE object_uri = @object AND kind = @kind AND actor_uri = @actor AND emoji = @emoji`,
		named{"object": like.Object, "kind": like.Kind, "actor": like.Actor, "emoji": like.Emoji})
}

// Remove removes the reaction that this activity of the actor made, and reports whether there
// was one.
func (t Reactions) Remove(ctx context.Context, activity, actor vocab.ID) (bool, error) {
	var objects []vocab.ID
	err := t.query(ctx, "remove reaction", column(&objects), `DELETE FROM reactions WHERE activity_uri = $1 AND actor_uri = $2 RETURNING object_uri`, activity, actor)
	t.touched.touch(0, objects...)
	return len(objects) > 0, err
}

// End removes a reaction as Remove does, and stores the time at as its end (see
// Activities.FindEnd).
func (t Reactions) End(ctx context.Context, by Owned, at time.Time) (bool, error) {
	there, err := t.Remove(ctx, by.ID, by.Actor)
	if err == nil && there {
		t.endActivity(by, at)
	}
	return there, err
}

// Began returns when the reaction that this activity made began. The time is zero if there is no
// such reaction, or it has ended.
func (t Reactions) Began(ctx context.Context, by Owned) (at time.Time, err error) {
	var begins []time.Time
	err = t.query(ctx, "read begin of reaction", column(&begins), `SELECT created_at FROM reactions WHERE activity_uri = $1 AND actor_uri = $2 ORDER BY created_at DESC LIMIT 1`, by.ID, by.Actor)
	if err != nil || len(begins) == 0 {
		return time.Time{}, err
	}
	return begins[0], nil
}
