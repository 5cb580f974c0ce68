package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
)

// meetUpgrade handles an invitation to j, which the other side calls the conversation of the two.
// The parameter own is another open encrypted conversation of the two.
//
// If the host of j says that j continues own, that host has closed its side of own already, for
// example because its database was restored, its rule does not permit own any more, or it met the
// user's upgrade. So own is closed here, too, and j replaces own. Either of the two may be the
// host of own.
//
// If the host of j does not say so, and the user hosts own, both sides have upgraded at the same
// time. On both sides the conversation with the smaller URI stays open. The other one is closed.
// It can still be read, and names its successor.
//
// In all other cases meetUpgrade returns false and does nothing.
func meetUpgrade(ctx context.Context, tx *user.Tx, a Arrival, own user.Conversation, j *user.JoinedConversation, said *rosterSaid) (bool, error) {
	isContinued := said.predecessor.Same(own.URI)
	switch {
	case !isContinued && !own.Host.Same(a.Me):
		return false, nil
	case !isContinued && own.URI.Canonical() < j.URI.Canonical():
		return true, joinContinued(ctx, tx, a, own, j)
	}
	if err := tx.Conversations.Close(ctx, own.ID, j.Host, a.Now, a.Tells); err != nil {
		return false, err
	}
	return true, joinSuccessor(ctx, tx, a, own, j)
}

// joinContinued stores the conversation of the other side as closed, with the user's own
// conversation as its successor. The messages of the closed conversation can be read.
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
	return tellChange(ctx, tx, eventSuccessor, c, a, j.Host)
}
