package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Timeline returns up to n entries of a conversation of the user, the newest first. Entries are
// Notes, messages of the log, and changes of the conversation. The parameter before is a place,
// and all returned entries come before that place. The result "more" reports whether other
// entries may follow.
func (r *Registry) Timeline(ctx context.Context, u vocab.Username, id uuid.UUID, before user.TimelinePlace, n int) (entries []user.TimelineEntry, more bool, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		entries, more, err = tx.Conversations.ListTimeline(ctx, id, r.Actors.ID(u), before, n)
		return err
	})
	return entries, more, err
}

// Held is a conversation as stored in the user's own database.
type Held struct {
	user.Conversation
	Members []user.ConversationMember
	Unread  int
}

// Held returns a conversation from the user's own database, with its members and the number of its
// unread entries. The conversation may have any host, or none.
func (r *Registry) Held(ctx context.Context, u vocab.Username, id uuid.UUID) (h Held, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		c, err := tx.Conversations.Find(ctx, id)
		if err == nil && c == nil {
			err = errNoConversation
		}
		if err != nil {
			return err
		}
		h.Conversation = *c
		if h.Members, err = tx.Conversations.ListMembers(ctx, id); err != nil {
			return err
		}
		h.Unread, err = tx.Conversations.CountUnread(ctx, id, r.Actors.ID(u))
		return err
	})
	return h, err
}
