package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Timeline returns up to n entries of a conversation of the user before a place, the newest first:
// Notes, messages of its log, and what became of it. more tells whether others may follow.
func (r *Registry) Timeline(ctx context.Context, u vocab.Username, id uuid.UUID, before db.TimelinePlace, n int) (entries []db.TimelineEntry, more bool, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		entries, more, err = tx.Timeline(ctx, id, r.Actors.ID(u), before, n)
		return err
	})
	return entries, more, err
}

// Held is a conversation as the user's own database has it.
type Held struct {
	db.Conversation
	Members []db.ConversationMember
	Unread  int
}

// Held returns a conversation of the user that this server does not put in order.
func (r *Registry) Held(ctx context.Context, u vocab.Username, id uuid.UUID) (h Held, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		c, err := tx.Conversation(ctx, id)
		if err == nil && c == nil {
			err = errNoConversation
		}
		if err != nil {
			return err
		}
		h.Conversation = *c
		if h.Members, err = tx.ConversationMembers(ctx, id); err != nil {
			return err
		}
		h.Unread, err = tx.CountUnreadIn(ctx, id, r.Actors.ID(u))
		return err
	})
	return h, err
}
