package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Continue makes a conversation that the user hosts in the place of one that is closed. Each names
// the other.
func (r *Registry) Continue(ctx context.Context, u vocab.Username, id uuid.UUID, groupInfo []byte) (View, error) {
	me, now := r.Actors.ID(u), r.Now()
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		before, err := r.findClosed(ctx, tx, u, id)
		if err != nil {
			return err
		}
		next := newConversation(me, string(group.GroupID), now)
		next.Partner, next.Predecessor = before.Partner, before.URI
		if err := continueWith(ctx, tx, *before, next, me, me); err != nil {
			return err
		}
		v, err = host(ctx, tx, next, groupInfo)
		return err
	})
	return v, explainTaken(err)
}

// findClosed returns a conversation that a member may continue.
func (r *Registry) findClosed(ctx context.Context, tx *db.Tx, u vocab.Username, id uuid.UUID) (*db.Conversation, error) {
	c, err := tx.Conversation(ctx, id)
	if err == nil && c == nil {
		err = errNoConversation
	}
	if err != nil {
		return nil, err
	}
	m, err := tx.ConversationMember(ctx, id, r.Actors.ID(u))
	switch {
	case err != nil:
		return nil, err
	case !m.IsIn():
		return nil, errNotMember
	case c.ClosedAt == nil:
		return nil, fault.New(fault.Conflict, "the conversation goes on: none continues it").WithCode("conversation_open")
	case c.Successor != "":
		return nil, errContinued(c)
	case c.Partner != "":
		return c, checkRule(ctx, tx, r.ruleOf(u), c.Partner)
	}
	return c, nil
}

// continueWith writes down a conversation in the place of another one, of which no other
// transaction may do the same.
func continueWith(ctx context.Context, tx PairTx, before, next db.Conversation, me, by vocab.ID) error {
	did, err := tx.ContinueConversation(ctx, before.ID, next.URI, by == me, next.CreatedAt)
	if err == nil && !did {
		err = errContinued(&before)
	}
	if err == nil {
		err = tx.AddConversation(ctx, next)
	}
	if err != nil {
		return err
	}
	return tellOf(ctx, tx, eventSuccessor, before, me, by, next.CreatedAt)
}

// joinSuccessor writes down the conversation of two that the user joined in the place of the one
// that was closed.
func joinSuccessor(ctx context.Context, tx PairTx, a Arrival, before db.Conversation, j *db.JoinedConversation) error {
	next := newConversation(j.Host, j.GroupID, a.Now)
	next.URI, next.Partner, next.Predecessor = j.URI, j.Host, before.URI
	j.ID = next.ID
	return continueWith(ctx, tx, before, next, a.Me, j.Host)
}
