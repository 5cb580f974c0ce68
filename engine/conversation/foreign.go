package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of what waits for groups that the user is not known to be in.
const (
	unplacedOfSender = 50
	maxUnplaced      = 500
)

// CheckForeign refuses what claims to be a message of a group of another server and cannot be.
func CheckForeign(a *vocab.Activity) error {
	if err := checkPrivate(a); err != nil {
		return err
	}
	_, err := readMessage(a)
	return err
}

// ReceiveForeign keeps a message that its sender's server sent by itself: of a group that nobody
// puts in order, or of one whose host will say where it stands. One of a group that the user hosts
// is put in order.
func (o Orderer) ReceiveForeign(ctx context.Context, tx InboxTx, a Arrival) (Outcome, error) {
	e, err := readMessage(a.Activity)
	if err != nil {
		return Outcome{}, err
	}
	e.sender = a.Sender.ID
	if err := tx.LockInbox(ctx); err != nil {
		return Outcome{}, err
	}
	r := &receiver{InboxTx: tx, Arrival: a, entry: e}
	switch {
	case e.kind == db.KindWelcome:
		return r.takeForeignWelcome(ctx)
	case e.group == "":
		return r.keepUnplaced(ctx, Unreadable)
	}
	if r.conversation, err = tx.JoinedByGroup(ctx, e.group); err != nil {
		return Outcome{}, err
	}
	if r.conversation == nil {
		hosted, err := tx.HostedByGroup(ctx, e.group)
		if err != nil {
			return Outcome{}, err
		}
		if hosted != uuid.Nil {
			return o.order(ctx, r, hosted)
		}
		known, err := tx.IsGroupKnown(ctx, e.group)
		if err != nil || known {
			return Outcome{Reason: HostedByUser}, err
		}
		if found, err := r.beginHostless(ctx); err != nil || !found {
			if err != nil {
				return Outcome{}, err
			}
			return r.keepUnplaced(ctx, UnknownGroup)
		}
	}
	if r.conversation.Host != "" {
		return r.keepEarly(ctx)
	}
	return r.keepInOrder(ctx)
}

// takeForeignWelcome keeps a Welcome for each device of the user that it is for. It does not tell
// which conversation it lets into.
func (r *receiver) takeForeignWelcome(ctx context.Context) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedWelcome)
	}
	w, err := mls.ParseWelcome(r.entry.message)
	if err != nil {
		return r.keepUnplaced(ctx, Unreadable)
	}
	if full, err := r.isFull(ctx); err != nil || full {
		return Outcome{Reason: TooMany}, err
	}
	last := Outcome{Reason: UnknownPackage}
	for _, ref := range w.KeyPackages {
		ours, err := r.HasKeyPackage(ctx, ref)
		if err != nil {
			return Outcome{}, err
		}
		if !ours {
			continue
		}
		o, err := r.keepWelcome(ctx, ref)
		if err != nil {
			return Outcome{}, err
		}
		if o.Kept || last.Reason == UnknownPackage {
			last = o
		}
	}
	return last, nil
}

func (r *receiver) isFull(ctx context.Context) (bool, error) {
	ofSender, all, err := r.CountUnplaced(ctx, r.entry.sender)
	return ofSender >= unplacedOfSender || all >= maxUnplaced, err
}

// keepUnplaced keeps what belongs to no conversation that is known here: a device may know more.
func (r *receiver) keepUnplaced(ctx context.Context, reason string) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedWelcome)
	}
	if full, err := r.isFull(ctx); err != nil || full {
		return Outcome{Reason: TooMany}, err
	}
	isNew, err := r.AddInboxEntry(ctx, r.row())
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tell(ctx, eventUndecryptable, vocab.Doc{"reason": reason})
}

// beginHostless writes the conversation down that a Welcome of the sender let the user into: the
// one that the message names as its context, or the only one that waits.
func (r *receiver) beginHostless(ctx context.Context) (bool, error) {
	w, err := r.UnplacedWelcome(ctx, r.entry.sender, vocab.IDOf(r.Activity.Object.Doc.Text("context")))
	if err == nil && w == nil {
		w, err = r.UnplacedWelcome(ctx, r.entry.sender, "")
	}
	if err != nil || w == nil {
		return false, err
	}
	r.conversation, err = beginGroup(ctx, r, w.ID, r.entry.group, false, r.Arrival)
	return err == nil, err
}

// beginGroup writes a conversation down that nobody puts in order, with the messages of its group
// that came before.
func beginGroup(ctx context.Context, tx InboxTx, welcome uuid.UUID, group string, confirmed bool, a Arrival) (*db.JoinedConversation, error) {
	id := uuid.Must(uuid.NewV7())
	j := &db.JoinedConversation{ID: id, URI: vocab.ID(groupPrefix + id.String()), GroupID: group, Status: db.StatusActive, FormerGroups: []string{}, Confirmed: confirmed}
	if err := tx.AddJoined(ctx, *j, a.Now); err != nil {
		return nil, err
	}
	if err := tx.PlaceWelcome(ctx, welcome, id); err != nil {
		return nil, err
	}
	if err := tx.JoinConversation(ctx, id, []vocab.ID{a.Me}, db.RoleMember, 0); err != nil {
		return nil, err
	}
	n, err := tx.PlaceGroup(ctx, id, group, 0)
	if err != nil {
		return nil, err
	}
	j.LastSeq = n
	j.WholeSeq, err = tx.SaveJoined(ctx, *j, a.Now)
	return j, err
}

// keepEarly keeps a message of a member until the host of its conversation has put it in order.
func (r *receiver) keepEarly(ctx context.Context) (Outcome, error) {
	j := r.conversation
	if j.Status == db.StatusFrozen {
		return refused(FrozenCopy)
	}
	member, err := r.ConversationMember(ctx, j.ID, r.entry.sender)
	if err != nil || !member.IsIn() {
		return Outcome{Reason: NotMember}, err
	}
	if r.entry.kind == db.KindOpaque {
		return refused(Unreadable)
	}
	r.entry.generation = j.Generation
	isNew, err := r.AddInboxEntry(ctx, r.row())
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	if r.entry.kind != db.KindApplication || r.IsBlocked || r.entry.sender == r.Me {
		return Outcome{Kept: true}, nil
	}
	return Outcome{Kept: true}, r.tell(ctx, eventChat, vocab.Doc{})
}

// keepInOrder keeps a message where no host puts any in order: as it comes. Of two commits of one
// epoch both are kept, and the devices apply the first that is valid.
func (r *receiver) keepInOrder(ctx context.Context) (Outcome, error) {
	j := r.conversation
	r.entry.seq = j.LastSeq + 1
	row := r.row()
	isNew, err := r.AddInboxEntry(ctx, row)
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	if err := r.JoinConversation(ctx, j.ID, []vocab.ID{r.entry.sender}, db.RoleMember, 0); err != nil {
		return Outcome{}, err
	}
	reason := r.lateness()
	r.advance(j)
	if err := r.saveState(ctx); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tellMessage(ctx, true)
}
