package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Continue makes a conversation that the user hosts and that continues a closed one. Each of the
// two names the other.
func (r *Registry) Continue(ctx context.Context, u vocab.Username, id uuid.UUID, groupInfo []byte) (View, error) {
	me, now := r.Actors.ID(u), r.Now()
	group, err := readNewGroup(groupInfo, me)
	if err != nil {
		return View{}, err
	}
	var v View
	err = r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		before, err := r.findClosed(ctx, tx, u, id)
		if err != nil {
			return err
		}
		next := newConversation(me, string(group.GroupID), now)
		next.Partner, next.Predecessor = before.Partner, before.URI
		if err := continueWith(ctx, tx, *before, next, Arrival{Me: me, Now: now}, me); err != nil {
			return err
		}
		v, err = host(ctx, tx, next, groupInfo)
		return err
	})
	return v, explainTaken(err, "/groupInfo")
}

// findClosed returns a closed conversation that the user may continue, and locks it.
func (r *Registry) findClosed(ctx context.Context, tx *user.Tx, u vocab.Username, id uuid.UUID) (*user.Conversation, error) {
	c, err := tx.Conversations.Find(ctx, id)
	if err == nil && c != nil {
		c, err = tx.Conversations.FindAt(ctx, c.URI)
	}
	if err == nil && c == nil {
		err = errNoConversation
	}
	if err != nil {
		return nil, err
	}
	m, err := tx.Conversations.FindMember(ctx, id, r.Actors.ID(u))
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

// continueWith stores the parameter next as the successor of the conversation in the parameter
// before. It refuses if that conversation already has a successor.
func continueWith(ctx context.Context, tx *user.Tx, before, next user.Conversation, a Arrival, by vocab.ID) error {
	did, err := tx.Conversations.Continue(ctx, before.ID, next.URI, by == a.Me, next.CreatedAt)
	if err == nil && !did {
		err = errContinued(&before)
	}
	if err == nil {
		err = tx.Conversations.Add(ctx, next)
	}
	if err != nil {
		return err
	}
	return tellChange(ctx, tx, eventSuccessor, before, a, by)
}

// joinSuccessor stores a conversation of two that the user joins as the successor of a closed
// one.
func joinSuccessor(ctx context.Context, tx *user.Tx, a Arrival, before user.Conversation, j *user.JoinedConversation) error {
	next := newConversation(j.Host, j.GroupID, a.Now)
	next.URI, next.Partner, next.Predecessor = j.URI, j.Host, before.URI
	j.ID = next.ID
	return continueWith(ctx, tx, before, next, a, j.Host)
}

// noteSuccessor stores the predecessor of the conversation that the user joins, if the host names
// a predecessor in which both host and user are members. A conversation of two does not count as
// a predecessor. A closed predecessor gets the new conversation as its successor. If the
// predecessor is not closed, its log is read from its own host. This also shows whether that host
// is gone.
func (r *receiver) noteSuccessor(ctx context.Context) error {
	if r.entry.roster == nil || r.entry.roster.predecessor == "" {
		return nil
	}
	before, err := r.tx.Conversations.FindAt(ctx, r.entry.roster.predecessor)
	if err != nil || before == nil || before.Mode != user.ModeEncrypted || before.Partner != "" {
		return err
	}
	for _, who := range []vocab.ID{r.Sender.ID, r.Me} {
		member, err := r.tx.Conversations.FindMember(ctx, before.ID, who)
		if err != nil || !member.IsIn() {
			return err
		}
	}
	if err := r.tx.Conversations.NamePredecessor(ctx, r.conversation.ID, before.URI); err != nil {
		return err
	}
	if before.ClosedAt == nil {
		r.tx.Joined.NoteBehind(before.ID, before.Host, false)
		return nil
	}
	did, err := r.tx.Conversations.Continue(ctx, before.ID, r.conversation.URI, false, r.Now)
	if err != nil || !did {
		return err
	}
	return tellChange(ctx, r.tx, eventSuccessor, *before, r.Arrival, r.Sender.ID)
}
