package conversation

import (
	"bytes"
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// judgeContradiction decides what two different messages in one place mean. When the host has
// signed for both, it tells its members different things: the copy freezes. A message without
// its signature proves nothing, and the first one stands.
func (r *receiver) judgeContradiction(ctx context.Context, other []byte) (Outcome, error) {
	if other == nil || r.row().Receipt == nil {
		return refused(Contradiction)
	}
	return Outcome{Kept: true, Reason: Contradiction}, r.freeze(ctx)
}

// breaksChain reports whether the host signs that another message stands before this one than the
// one that is here, for which it has signed too. Then the copy freezes.
func (r *receiver) breaksChain(ctx context.Context, row db.InboxEntry) (bool, error) {
	if row.Receipt == nil || len(r.entry.previous) == 0 {
		return false, nil
	}
	before, receipt, err := r.InboxHash(ctx, r.conversation.ID, r.entry.seq-1)
	if err != nil || receipt == nil || bytes.Equal(before, r.entry.previous) {
		return false, err
	}
	return true, r.freeze(ctx)
}

// freeze ends what may be sent to a conversation whose host equivocates, and tells the user once.
func (r *receiver) freeze(ctx context.Context) error {
	j := r.conversation
	j.Status, j.ResetGroupID = db.StatusFrozen, ""
	if _, err := r.SaveJoined(ctx, *j, r.Now); err != nil {
		return err
	}
	d := vocab.Doc{"eventId": uuid.Must(uuid.NewV7()).String(), "conversation": string(j.URI), "conversationId": j.ID.String(), "actorUri": string(j.Host),
		"activityUri": string(r.Activity.ID), "seq": r.entry.seq, "trust": "contact"}
	return r.AddEvent(ctx, db.Event{Type: eventEquivocation, Source: "ap", Payload: d.JSON(), At: r.Now})
}
