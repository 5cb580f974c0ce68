package conversation

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// holdCommit calls holdMessage with a commit, and with the commit's Welcomes for the added actors
// that know only the SWICG draft.
func (m *Members) holdCommit(ctx context.Context, u vocab.Username, to *user.Conversation, c *commit) error {
	if err := c.findAdded(ctx); err != nil {
		return err
	}
	var welcomes []user.HeldActivity
	for i, w := range c.welcomes {
		others := len(welcomes)
		for _, a := range c.readAdded() {
			actor := c.actors[a.actor]
			isThere := func(u user.HeldActivity) bool { return u.Recipients[0] == a.actor }
			if actor == nil || actor.DeliversMLS > 0 || !a.isIn(w) || slices.ContainsFunc(welcomes[others:], isThere) {
				continue
			}
			d, body, err := m.buildCreate(u, string(to.URI), &entry{kind: user.KindWelcome, message: c.Welcomes[i]}, []vocab.ID{a.actor})
			if err != nil {
				return err
			}
			welcomes = append(welcomes, user.HeldActivity{Activity: d.ID, Body: body, Recipients: []vocab.ID{a.actor}, Inboxes: []vocab.ID{actor.Inbox}})
		}
	}
	return m.holdMessage(ctx, u, to, c.Message, welcomes)
}

// readAdded returns the devices that the commit adds, as far as its proposals or its Declared
// name them.
func (c *commit) readAdded() []addition {
	all := c.declared.added
	if c.message == nil {
		return all
	}
	for _, p := range c.message.Proposals {
		if p.Type != mls.ProposalAdd || p.KeyPackage == nil {
			continue
		}
		// If there is an error, the host refuses the commit.
		if a, err := readAddition(p.KeyPackage, c.now); err == nil {
			all = append(all, a)
		}
	}
	return all
}

// holdMessage stores the Create activities that carry a message of the user to members that know
// only the SWICG draft, followed by the activities in the parameter then. All these activities are
// sent once the host has put the message in order. So nothing is sent before that, nothing is lost
// in a crash, and no host can make the user's server send a message that the user's device did not
// write.
func (m *Members) holdMessage(ctx context.Context, u vocab.Username, c *user.Conversation, content []byte, then []user.HeldActivity) error {
	first, err := m.createForForeign(ctx, u, c, content)
	if err != nil || len(first)+len(then) == 0 {
		return err
	}
	return m.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Joined.HoldActivities(ctx, c.ID, hashOf(content), append(first, then...), m.Now())
	})
}

// createForForeign returns the Create that carries a message to the members that know only the
// SWICG draft. It returns none if there is no such member. It also returns none if the message is
// not a PrivateMessage, because these members could not read it. It leaves out a member that
// cannot be found. If a later try may find the member, it returns the error instead.
func (m *Members) createForForeign(ctx context.Context, u vocab.Username, c *user.Conversation, content []byte) ([]user.HeldActivity, error) {
	to, foreign, err := m.listForeign(ctx, u, c)
	if err != nil || len(foreign) == 0 || !isPrivate(content) {
		return nil, err
	}
	e, err := entryOf(content)
	if err != nil {
		return nil, err
	}
	var held user.HeldActivity
	for _, id := range foreign {
		i, err := m.findInbox(ctx, id)
		if err != nil && !fault.IsPassing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held.Recipients, held.Inboxes = append(held.Recipients, i.Targets[0]), append(held.Inboxes, i.URL)
	}
	if len(held.Recipients) == 0 {
		return nil, nil
	}
	d, body, err := m.buildCreate(u, string(c.URI), e, to)
	if err != nil {
		return nil, err
	}
	held.Activity, held.Body = d.ID, body
	return []user.HeldActivity{held}, nil
}

// listForeign returns all other members of a conversation, and those among them that know only
// the SWICG draft. It returns none if the conversation is not mixed.
func (m *Members) listForeign(ctx context.Context, u vocab.Username, c *user.Conversation) (all, foreign []vocab.ID, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		j, err := readJoined(ctx, tx, c)
		if err != nil || !j.Mixed {
			return err
		}
		members, err := tx.Conversations.ListMembers(ctx, c.ID)
		for _, is := range members {
			if is.Actor == m.Local.ID(u) {
				continue
			}
			if all = append(all, is.Actor); !is.Lightweb {
				foreign = append(foreign, is.Actor)
			}
		}
		return err
	})
	return all, foreign, err
}

// dropHeld returns the parameter refusal unchanged. That is nil, or the error of sending the
// user's message to the host. If the host rejected the message, dropHeld removes the activities
// that are held for the message.
func (m *Members) dropHeld(ctx context.Context, u vocab.Username, c *user.Conversation, content []byte, refusal error) error {
	hash := hashOf(content)
	if !isRejection(refusal, hash) {
		return refusal
	}
	err := m.Store.Write(context.WithoutCancel(ctx), u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Joined.TakeHeld(ctx, c.ID, hash)
		return err
	})
	if err != nil {
		m.Log.Warn("the row that waited for a refused message is kept until it is old", "user", u, "conversation", c.ID, "err", err)
	}
	return refusal
}

// isRejection reports whether a refusal shows that the host has not ordered the message with this
// hash and will not order it as it is. A refusal of the request alone does not: the user may have
// sent the message before, the host may have ordered it, and its answer may have been lost. Then
// the sender may have too many requests by now, may be no member any more, or the conversation may
// have been reset since.
func isRejection(refusal error, hash []byte) bool {
	of := fault.Of(refusal)
	if of == nil {
		return false
	}
	switch of.Kind {
	case fault.Invalid, fault.TooLarge:
		return true
	case fault.Unprocessable:
		return of.Code != errKeyReuse.Code
	case fault.Conflict:
		return slices.Contains(rejections, of.Code) && !isMissing(refusal, hash)
	}
	return false
}

// rejections are the codes of conflicts that a host finds only after it has looked for the message
// in its log.
var rejections = []string{"epoch_conflict", "past_epoch", "future_epoch", "message_taken"}

// isMissing reports whether a Conflict lists the message with this hash: a commit that the log
// already has.
func isMissing(refusal error, hash []byte) bool {
	conflict, ok := errors.AsType[*Conflict](refusal)
	return ok && slices.ContainsFunc(conflict.Missing, func(e user.LogEntry) bool { return bytes.Equal(e.Hash, hash) })
}

// sendHeld queues the held activities of the user's message now that its host has put the
// message in order. They go to the members that know only the SWICG draft, in the host's order,
// except to actors that the user blocks.
func (r *receiver) sendHeld(ctx context.Context) error {
	if r.entry.sender != r.Me {
		return nil
	}
	held, err := r.tx.Joined.TakeHeld(ctx, r.conversation.ID, hashOf(r.entry.message))
	if err != nil {
		return err
	}
	for _, h := range held {
		blocked, err := r.tx.Blocks.FindAmong(ctx, h.Recipients)
		if err != nil {
			return err
		}
		var inboxes []user.Inbox
		for i, to := range h.Recipients {
			if !blocked[to] {
				inboxes = append(inboxes, user.Inbox{URL: h.Inboxes[i], Host: h.Inboxes[i].Host(), Targets: []vocab.ID{to}})
			}
		}
		job := user.Job{ID: uuid.Must(uuid.NewV7()), Activity: h.Activity, Object: r.conversation.URI, Type: vocab.Create, Body: h.Body, Audience: h.Recipients}
		if err := r.tx.Deliveries.EnqueueAll(ctx, []user.Job{job}, inboxes, r.Applied); err != nil {
			return err
		}
	}
	return nil
}
