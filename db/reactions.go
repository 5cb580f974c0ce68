package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The kinds of a reaction: an actor has at most one of each to an object, and of those by emoji
// one with each.
const (
	Review   = "review"   // Like or Dislike
	Announce = "announce" // a boost
	Emoji    = "emoji"    // EmojiReact, or a Like with an emoji
)

// Reaction is what an actor thinks of an object.
type Reaction struct {
	Object   vocab.ID
	Actor    vocab.ID
	Kind     string
	Emoji    string // of one of the kind Emoji
	Type     string
	Activity vocab.ID
}

// SetReaction keeps a reaction in place of the one that the actor had of this kind, with this
// emoji.
func (t *Tx) SetReaction(ctx context.Context, r Reaction, now time.Time) error {
	t.unsent.react(reactionRow{r, now})
	t.touched.touch(0, r.Object)
	return t.added(ctx, 0)
}

const reactionColumns = `object_uri, actor_uri, kind, emoji, type, activity_uri`

// Reaction returns the reaction of the kind of like, with its emoji, that its actor has to its
// object; nil when it has none.
func (t *Tx) Reaction(ctx context.Context, like Reaction) (*Reaction, error) {
	return one[Reaction](ctx, t, "read reaction", `SELECT `+reactionColumns+` FROM reactions
		WHERE object_uri = $1 AND kind = $2 AND actor_uri = $3 AND emoji = $4`, like.Object, like.Kind, like.Actor, like.Emoji)
}

// RemoveReaction removes the reaction that this activity of the actor made, and tells whether
// there was one.
func (t *Tx) RemoveReaction(ctx context.Context, activity, actor vocab.ID) (bool, error) {
	var objects []vocab.ID
	err := t.query(ctx, "remove reaction", column(&objects), `DELETE FROM reactions WHERE activity_uri = $1 AND actor_uri = $2 RETURNING object_uri`, activity, actor)
	t.touched.touch(0, objects...)
	return len(objects) > 0, err
}
