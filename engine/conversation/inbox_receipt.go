package conversation

import (
	"bytes"
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// judgeContradiction handles an entry that contradicts a stored one, because both would have the
// same place in the log. The parameter other is the receipt of the stored entry. If the host has
// signed receipts for both, it tells its members different things, and the copy freezes. Without
// both receipts nothing is proven, so the new entry is refused and the stored one stays.
func (r *receiver) judgeContradiction(ctx context.Context, other []byte) (Outcome, error) {
	if other == nil || r.row().Receipt == nil {
		return refused(Contradiction)
	}
	return Outcome{Kept: true, Reason: Contradiction}, r.freeze(ctx)
}

// breaksChain reports whether the host contradicts itself about the previous message, and freezes
// the copy if so. The host contradicts itself if the stored previous message has a receipt, and
// the receipt of this message names another hash for the previous message.
func (r *receiver) breaksChain(ctx context.Context, row user.InboxEntry) (bool, error) {
	if row.Receipt == nil || len(r.entry.previous) == 0 {
		return false, nil
	}
	before, receipt, err := r.tx.Messages.FindHash(ctx, r.conversation.ID, r.entry.seq-1)
	if err != nil || receipt == nil || bytes.Equal(before, r.entry.previous) {
		return false, err
	}
	return true, r.freeze(ctx)
}

// freeze freezes the copy of a conversation whose host tells members different things, and adds
// an event for the user. Nothing can be sent to a frozen conversation, and nothing more is
// received from it.
func (r *receiver) freeze(ctx context.Context) error {
	j := r.conversation
	j.Status, j.ResetGroupID = user.StatusFrozen, ""
	if _, err := r.tx.Joined.Save(ctx, *j, r.Now); err != nil {
		return err
	}
	trust, err := trustIn(ctx, r.tx, hasJoined(j), r.Me, j.Host)
	if err != nil {
		return err
	}
	d := vocab.Doc{"conversation": string(j.URI), "conversationId": j.ID.String(), "actorUri": string(j.Host),
		"activityUri": string(r.Activity.ID), "seq": r.entry.seq}
	return r.tx.Events.Add(ctx, user.NewEvent(eventEquivocation, user.SourceAP, trust, d, r.Now))
}
