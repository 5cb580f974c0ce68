package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// checkMember refuses a caller that is not a member. A caller that never was a member gets the
// same refusal as for a conversation that does not exist.
func checkMember(m *user.ConversationMember) error {
	switch {
	case m == nil:
		return errNoConversation
	case !m.IsIn():
		return errNotMember
	}
	return nil
}

// memberOf returns the membership of a caller. It refuses a caller that is not a member, or that
// the host blocks.
func memberOf(ctx context.Context, tx *user.Tx, c *user.HostedConversation, caller vocab.ID) (*user.ConversationMember, error) {
	m, err := tx.Conversations.FindMember(ctx, c.ID, caller)
	if err == nil {
		err = checkMember(m)
	}
	if err != nil {
		return nil, err
	}
	blocked, err := tx.Blocks.FindAmong(ctx, []vocab.ID{caller})
	if err == nil && blocked[caller] {
		err = errNotMember
	}
	return m, err
}
