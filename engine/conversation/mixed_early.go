package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// early limits the messages that wait in the host's database for their epoch to begin.
var early = bound{ofActor: 50, ofDomain: 150, all: 500}

// isEarly reports whether a message is of an epoch that the conversation has not reached. Two
// activities may change places on their way, so the commits before it may still come.
func (r *receiver) isEarly(c *user.HostedConversation) bool {
	e := r.entry
	most := maxText
	if e.kind == user.KindCommit {
		most = maxCommit
	}
	return c.Mixed && c.Status == user.StatusActive && e.group == c.GroupID && e.epoch > c.Epoch && isPrivate(e.message) && len(e.message) <= most
}

// keepForEpoch stores an early message of a member who knows only the SWICG draft. Other members
// get commits from the host alone, so they are in no epoch before it.
func (r *receiver) keepForEpoch(ctx context.Context, c *user.HostedConversation) (Outcome, error) {
	e := r.entry
	member, err := r.tx.Conversations.FindMember(ctx, c.ID, e.sender)
	if err != nil || !member.IsIn() || member.Lightweb {
		return Outcome{Reason: NotMember}, err
	}
	waiting, err := r.tx.Hosted.CountEarly(ctx)
	if err != nil {
		return Outcome{}, err
	}
	if full, err := early.isReached(ctx, r.tx, waiting, e.sender); err != nil || full {
		return Outcome{Reason: TooMany}, err
	}
	isNew, err := r.tx.Hosted.KeepEarly(ctx, *c, user.EarlyMessage{Epoch: e.epoch, Sender: e.sender, Content: e.message, Hash: hashOf(e.message)}, r.Applied)
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	return Outcome{Kept: true, Reason: FutureEpoch}, nil
}

// orderEarly orders the messages that waited for the epoch that a commit has begun. If a commit is
// among them, it goes on with the next epoch. A message that waited for an epoch before is dropped:
// a commit of another server began that epoch, and its sender did not know of it.
func (d Deps) orderEarly(ctx context.Context, r *receiver, c *user.HostedConversation) error {
	for {
		begun := c.Epoch
		waiting, err := r.tx.Hosted.TakeEarly(ctx, *c)
		if err != nil {
			return err
		}
		for _, w := range waiting {
			if err := d.orderKept(ctx, r, c, w); err != nil {
				return err
			}
		}
		if c.Epoch == begun {
			return nil
		}
	}
}

// orderKept puts an early message into the log, unless the host has blocked its sender since, or
// the operator refuses the sender by now.
func (d Deps) orderKept(ctx context.Context, r *receiver, c *user.HostedConversation, w user.EarlyMessage) error {
	blocked, err := r.tx.Blocks.FindAmong(ctx, []vocab.ID{w.Sender})
	if err != nil || blocked[w.Sender] || r.Refuses != nil && r.Refuses(w.Sender) {
		return err
	}
	e, err := entryOf(w.Content)
	if err != nil {
		return err
	}
	e.sender = w.Sender
	_, err = d.orderEntry(ctx, &receiver{tx: r.tx, Arrival: r.Arrival, entry: e}, c)
	return err
}
