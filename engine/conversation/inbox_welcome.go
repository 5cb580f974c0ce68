package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of conversations that the user was let into and has not joined.
const (
	invitationsOfHost = 20
	maxInvitations    = 200
)

// takeWelcome keeps a Welcome of a host, and writes the conversation down that it lets into. One
// of an actor that the user blocks is refused, and one for a key package that is not the user's.
func (r *receiver) takeWelcome(ctx context.Context) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedWelcome)
	}
	if ours, err := r.HasKeyPackage(ctx, r.entry.keyPackage); err != nil || !ours {
		return Outcome{Reason: UnknownPackage}, err
	}
	reason, err := r.findOrJoin(ctx)
	if err != nil || reason != "" {
		return Outcome{Reason: reason}, err
	}
	return r.keepWelcome(ctx, r.entry.keyPackage)
}

// findOrJoin finds the conversation that a Welcome lets into, or writes it down. It returns why it
// cannot.
func (r *receiver) findOrJoin(ctx context.Context) (reason string, err error) {
	e, j := r.entry, r.conversation
	if j != nil && j.Status == db.StatusFrozen {
		return FrozenCopy, nil
	}
	if j != nil {
		fits, err := r.fitsGroup(ctx)
		if err != nil || !fits {
			return WrongGroup, err
		}
		return "", r.comeBack(ctx)
	}
	if known, err := r.IsGroupKnown(ctx, e.group); err != nil || known {
		return WrongGroup, err
	}
	ofHost, all, err := r.CountInvitations(ctx, r.Sender.ID)
	if err != nil || ofHost >= invitationsOfHost || all >= maxInvitations {
		return TooMany, err
	}
	r.conversation = &db.JoinedConversation{ID: uuid.Must(uuid.NewV7()), URI: r.Activity.Target.ID, Host: r.Sender.ID, GroupID: e.group, Generation: e.generation, Epoch: e.epoch,
		LastSeq: e.seq, WholeSeq: e.seq, Status: db.StatusActive, FormerGroups: []string{}}
	if _, err := joinPair(ctx, r, r.Arrival, r.conversation, e.roster.names()); err != nil {
		return "", err
	}
	if err := r.AddJoined(ctx, *r.conversation, r.Now); err != nil {
		return "", err
	}
	return "", r.saveWelcomed(ctx)
}

// comeBack lets a member into a conversation that it knows. One that was out of it reads on from
// the commit that let it in.
func (r *receiver) comeBack(ctx context.Context) error {
	j := r.conversation
	me, err := r.ConversationMember(ctx, j.ID, r.Me)
	if err != nil {
		return err
	}
	if !me.IsIn() {
		j.WholeSeq = max(j.WholeSeq, r.entry.seq)
	}
	r.advance(j)
	return r.saveWelcomed(ctx)
}

// saveWelcomed writes the state down. Messages may have come before the Welcome: its host is
// asked.
func (r *receiver) saveWelcomed(ctx context.Context) error {
	if err := r.saveState(ctx); err != nil {
		return err
	}
	r.NoteBehind(r.conversation.ID, false)
	return nil
}

// keepWelcome keeps a Welcome for the device with a key package, and tells the user.
func (r *receiver) keepWelcome(ctx context.Context, ref []byte) (Outcome, error) {
	w := db.Welcome{ID: uuid.Must(uuid.NewV7()), Recipient: r.Me, KeyPackage: ref, Content: r.entry.message, CreatedAt: r.Now, Sender: r.entry.sender, Object: r.entry.object}
	if r.conversation != nil {
		w.Conversation = r.conversation.ID
	}
	isNew, err := r.TakeWelcome(ctx, w)
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	row := r.row()
	row.Seq, row.Receipt = nil, nil
	if _, err := r.AddInboxEntry(ctx, row); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true}, r.tell(ctx, eventWelcome, vocab.Doc{"welcomeId": w.ID.String()})
}
