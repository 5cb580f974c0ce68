package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// checkMember returns what the caller is to the conversation. One that never was in it does not
// learn that there is such a conversation.
func checkMember(m *db.ConversationMember) error {
	switch {
	case m == nil:
		return errNoConversation
	case !m.IsIn():
		return errNotMember
	}
	return nil
}

func memberOf(ctx context.Context, tx *db.Tx, c *db.HostedConversation, caller vocab.ID) (*db.ConversationMember, error) {
	m, err := tx.ConversationMember(ctx, c.ID, caller)
	if err == nil {
		err = checkMember(m)
	}
	return m, err
}
