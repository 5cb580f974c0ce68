package conversation

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Orderer puts messages that arrive in the host's inbox into the log. Members that know only the
// SWICG draft send their messages there.
type Orderer struct {
	Actors  Actors
	Inboxes func([]user.Destination) []user.Inbox
	Rules   Rules
}

// order puts a message into the log, in the transaction that stores the message's arrival. So
// each message that is stored as received is in the log. It is there only once, even if it is
// sent again. A message of an epoch that has not begun waits for the commit that begins it. A
// refused message is dropped: its sender gets no answer, and the other members do not see it.
// Nothing is ordered for a member that the host blocks, as the host's routes take nothing from such
// a member.
func (o Orderer) order(ctx context.Context, r *receiver, id uuid.UUID) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedSender)
	}
	c, err := r.tx.Hosted.Lock(ctx, id)
	if err != nil || c == nil {
		return Outcome{Reason: NotMember}, err
	}
	if r.isEarly(c) {
		return r.keepForEpoch(ctx, c)
	}
	d, before := Deps{Actors: o.Actors, Inboxes: o.Inboxes, Rules: o.Rules, Now: func() time.Time { return r.Applied }}, c.Epoch
	outcome, err := d.orderEntry(ctx, r, c)
	if err != nil || c.Epoch == before {
		return outcome, err
	}
	return outcome, d.orderEarly(ctx, r, c)
}

// orderEntry puts one message into the log.
func (d Deps) orderEntry(ctx context.Context, r *receiver, c *user.HostedConversation) (Outcome, error) {
	if r.entry.kind == user.KindCommit {
		return d.orderCommit(ctx, r, c)
	}
	m := &Message{Caller: r.entry.sender, Content: r.entry.message}
	if err := m.parse(); err != nil {
		return refused(Unordered)
	}
	t := &task{do: m}
	if err := d.acceptMessages(ctx, r.tx, Place{Host: r.User, ID: c.ID}, c, []*task{t}); err != nil {
		return Outcome{}, err
	}
	switch {
	case errors.Is(t.err, errNotMember):
		return refused(NotMember)
	case t.err != nil:
		return refused(Unordered)
	case m.accepted.Replayed:
		return refused(OutdatedMessage)
	}
	return Outcome{Kept: true}, nil
}

// orderCommit ends the epoch with a commit of a member that knows only the SWICG draft, if the
// commit was made in that epoch. The host cannot read the commit, so the roster stays as it is,
// and the next epoch has no GroupInfo. The committer itself has sent the commit to the other
// members that know only the draft. If another commit has ended that epoch before, the member has
// forked. Nobody could read what its device sent after the commit, so that is dropped.
func (d Deps) orderCommit(ctx context.Context, r *receiver, c *user.HostedConversation) (Outcome, error) {
	e, host := r.entry, d.Actors.ID(r.User)
	members, err := r.tx.Conversations.FindMembers(ctx, c.ID, []vocab.ID{e.sender})
	if m, known := members[e.sender]; err != nil || !known || !m.IsIn() || m.Lightweb {
		return Outcome{Reason: NotMember}, err
	}
	logged, err := r.tx.Hosted.FindMessages(ctx, c.ID, [][]byte{hashOf(e.message)})
	if err != nil || len(logged) > 0 {
		return Outcome{Reason: OutdatedMessage}, err
	}
	switch {
	case !c.Mixed || !isPrivate(e.message) || len(e.message) > maxCommit || e.group != c.GroupID || e.epoch > c.Epoch || c.Status != user.StatusActive:
		return refused(Unordered)
	case e.epoch < c.Epoch: // Kept makes the inbox remember the activity's id, so that the event is added only once
		if err := r.tx.Hosted.DropEarly(ctx, *c, e.sender, e.epoch); err != nil {
			return Outcome{}, err
		}
		return Outcome{Kept: true, Reason: Unordered}, r.tx.Events.Add(ctx, newEvent(eventReport, c, host, e.sender,
			vocab.Doc{"reason": reasonForked, "deviceEpoch": e.epoch, "epoch": c.Epoch, "generation": c.Generation}, r.Applied))
	}
	previous := c.LastHash
	entry := endEpoch(r.tx, c, e.sender, e.message, user.NextEpoch{Mixed: true}, r.Applied)
	if err := r.tx.Events.Add(ctx, newEvent(eventCommit, c, host, e.sender, vocab.Doc{"seq": c.LastSeq, "epoch": c.Epoch}, r.Applied)); err != nil {
		return Outcome{}, err
	}
	f, err := newFanout(ctx, r.tx, d, r.User, c, c.LastSeq, r.Applied)
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true}, f.tellEntries(ctx, r.tx, previous, entry)
}
