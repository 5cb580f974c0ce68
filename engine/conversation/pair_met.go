package conversation

import (
	"context"
	"github.com/lightweb/lightweb/db/user"
)

// meetUpgrade handles the case that both sides have upgraded at the same time: the user to own,
// the other side to j. On both sides the conversation with the smaller URI goes on. The other one
// is closed; it can still be read, and names its successor. But if the host of j says that j
// continues own, that host has already closed own, so j goes on. meetUpgrade returns false and
// does nothing if the user does not host own.
func meetUpgrade(ctx context.Context, tx *user.Tx, a Arrival, own user.Conversation, j *user.JoinedConversation, said *rosterSaid) (bool, error) {
	if !own.Host.Same(a.Me) {
		return false, nil
	}
	if !said.predecessor.Same(own.URI) && own.URI.Canonical() < j.URI.Canonical() {
		return true, joinContinued(ctx, tx, a, own, j)
	}
	if err := tx.Conversations.Close(ctx, own.ID, j.Host, a.Now); err != nil {
		return false, err
	}
	return true, joinSuccessor(ctx, tx, a, own, j)
}

// joinContinued stores the conversation of the other side as closed, with the user's own
// conversation as its successor. The messages in it can be read.
func joinContinued(ctx context.Context, tx *user.Tx, a Arrival, own user.Conversation, j *user.JoinedConversation) error {
	c := newConversation(j.Host, j.GroupID, a.Now)
	c.URI, c.Partner, c.Successor = j.URI, j.Host, own.URI
	j.ID, j.Status = c.ID, user.StatusClosed
	if err := tx.Conversations.AddContinued(ctx, c, j.LastSeq, a.Now); err != nil {
		return err
	}
	if err := tx.Conversations.NamePredecessor(ctx, own.ID, c.URI); err != nil {
		return err
	}
	return tellOf(ctx, tx, eventSuccessor, c, a.Me, j.Host, a.Now)
}
