package conversation

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// unplaced limits the stored messages and Welcomes that belong to no known conversation of the
// user.
var unplaced = bound{ofActor: 50, ofDomain: 150, all: 500}

// CheckForeign checks an activity from another server that carries an MLS message. It refuses the
// activity if it is malformed or addressed to everybody.
func CheckForeign(a *vocab.Activity) error {
	if err := checkPrivate(a); err != nil {
		return err
	}
	_, err := readMessage(a)
	return err
}

// IsOfJoinedGroup reports whether an activity carries a message of a group without a host that a
// device of the user has joined.
func IsOfJoinedGroup(ctx context.Context, tx *user.Tx, a *vocab.Activity) (bool, error) {
	e, err := readMessage(a)
	if err != nil || e.group == "" { // such as the state of a conversation, which is no message
		return false, nil
	}
	j, err := tx.Joined.FindGroup(ctx, e.group)
	return err == nil && j != nil && j.Confirmed && j.Host == "", err
}

// ReceiveForeign stores a message that came in a plain Create from its sender's server. Either the
// message's group has no host, or the host of the group will announce the message's place in the
// log. If the user is that host, ReceiveForeign puts the message into the log.
func (o Orderer) ReceiveForeign(ctx context.Context, tx *user.Tx, a Arrival) (outcome Outcome, err error) {
	e, err := readMessage(a.Activity)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { outcome.Mislabeled = e.mislabeled }()
	e.sender = a.Sender.ID
	if err := tx.Messages.Lock(ctx); err != nil {
		return Outcome{}, err
	}
	r := &receiver{tx: tx, Arrival: a, entry: e}
	switch {
	case e.kind == user.KindWelcome:
		return r.takeForeignWelcome(ctx)
	case e.group == "":
		return r.keepUnplaced(ctx, Unreadable)
	}
	hosted, err := tx.Hosted.FindGroup(ctx, e.group)
	if err != nil {
		return Outcome{}, err
	}
	if hosted != uuid.Nil {
		return o.order(ctx, r, hosted)
	}
	if r.conversation, err = tx.Joined.FindGroup(ctx, e.group); err != nil {
		return Outcome{}, err
	}
	if r.conversation == nil {
		taken, err := tx.Joined.IsGroupTaken(ctx, e.group)
		if err != nil || taken {
			return Outcome{Reason: HostedByUser}, err
		}
	}
	if isPlaced, err := r.findPlace(ctx); err != nil || !isPlaced {
		if err != nil {
			return Outcome{}, err
		}
		return r.keepUnplaced(ctx, UnknownGroup)
	}
	if r.conversation.Host != "" {
		return r.keepEarly(ctx)
	}
	return r.keepInOrder(ctx)
}

// findPlace reports whether the message has a conversation. It uses the stored conversation, or
// stores a new one to which a Welcome of the sender has invited the user. A host has no right to a
// group before a device of the user has accepted that host's invitation. Until then, a Welcome
// from the sender of the message takes precedence over the invitation. If there is no such
// Welcome, the message belongs to the invitation's conversation only if the sender is a member of
// it.
func (r *receiver) findPlace(ctx context.Context) (bool, error) {
	j := r.conversation
	if j != nil && (j.Confirmed || j.Host == "") {
		return true, nil
	}
	if began, err := r.beginHostless(ctx); err != nil || began || j == nil {
		return began, err
	}
	member, err := r.tx.Conversations.FindMember(ctx, j.ID, r.entry.sender)
	if err != nil || !member.IsIn() {
		r.conversation = nil
	}
	return r.conversation != nil, err
}

// takeForeignWelcome stores one copy of a Welcome for each of the user's key packages that the
// Welcome names. A Welcome in a plain Create does not tell to which conversation it belongs.
func (r *receiver) takeForeignWelcome(ctx context.Context) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedSender)
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
		ours, err := r.tx.KeyPackages.Has(ctx, ref)
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
	waiting, err := r.tx.Messages.CountUnplaced(ctx)
	if err != nil {
		return false, err
	}
	return unplaced.isReached(ctx, r.tx, waiting, r.entry.sender)
}

// keepUnplaced stores a message that belongs to no conversation in this database. A device of
// the user may be able to read it.
func (r *receiver) keepUnplaced(ctx context.Context, reason string) (Outcome, error) {
	if r.IsBlocked {
		return refused(BlockedSender)
	}
	if full, err := r.isFull(ctx); err != nil || full {
		return Outcome{Reason: TooMany}, err
	}
	isNew, err := r.tx.Messages.Add(ctx, r.row())
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tell(ctx, eventUndecryptable, vocab.Doc{"reason": reason})
}

// beginHostless stores a conversation without a host, to which a Welcome of the sender has
// invited the user. The Welcome is the one that the message names as its context, or else the
// only Welcome of the sender that has no conversation yet. beginHostless returns false if there
// is no such Welcome, or if the sender may not invite the user. If a device has already confirmed
// the Welcome without naming the group, the new conversation is confirmed and does not count as
// an invitation.
func (r *receiver) beginHostless(ctx context.Context) (bool, error) {
	w, err := r.tx.Welcomes.FindUnplaced(ctx, r.entry.sender, vocab.IDOf(r.Activity.Object.Doc.Text("context")))
	if err == nil && w == nil {
		w, err = r.tx.Welcomes.FindUnplaced(ctx, r.entry.sender, "")
	}
	if err != nil || w == nil {
		return false, err
	}
	confirmed := w.State == user.WelcomeConsumed
	if !confirmed {
		if may, err := r.mayInvite(ctx, r.entry.sender); err != nil || !may {
			return false, err // ConfirmWelcome stores the conversation once a device confirms the Welcome
		}
	}
	r.conversation, err = beginGroup(ctx, r.tx, w, r.entry.group, confirmed, r.Arrival)
	return err == nil, err
}

// beginGroup stores a conversation without a host, whose members are the user and the sender of
// the Welcome. It moves the messages of the group that have already arrived into the
// conversation.
func beginGroup(ctx context.Context, tx *user.Tx, w *user.Welcome, group string, confirmed bool, a Arrival) (*user.JoinedConversation, error) {
	id := uuid.Must(uuid.NewV7())
	j := &user.JoinedConversation{ID: id, URI: vocab.ID(groupPrefix + id.String()), GroupID: group, Status: user.StatusActive, FormerGroups: []string{}, Confirmed: confirmed}
	if err := tx.Joined.Add(ctx, *j, a.Now); err != nil {
		return nil, err
	}
	if err := tx.Welcomes.Place(ctx, w.ID, id); err != nil {
		return nil, err
	}
	if err := tx.Conversations.Join(ctx, id, []vocab.ID{a.Me, w.Sender}, user.RoleMember, 0); err != nil {
		return nil, err
	}
	var named []vocab.ID
	if a.Activity != nil {
		named = audience.Open(a.Activity.Addressing)
	}
	n, err := tx.Joined.PlaceGroup(ctx, id, group, named, 0)
	if err != nil {
		return nil, err
	}
	j.LastSeq = n
	j.WholeSeq, err = tx.Joined.Save(ctx, *j, a.Now)
	return j, err
}

// keepEarly stores a member's message that arrived before the host of its conversation has put
// it in order.
func (r *receiver) keepEarly(ctx context.Context) (Outcome, error) {
	j := r.conversation
	if j.Status == user.StatusFrozen {
		return refused(FrozenCopy)
	}
	member, err := r.tx.Conversations.FindMember(ctx, j.ID, r.entry.sender)
	if err != nil || !member.IsIn() {
		return Outcome{Reason: NotMember}, err
	}
	if r.entry.kind == user.KindOpaque {
		return refused(Unreadable)
	}
	r.entry.generation = j.Generation
	isNew, err := r.tx.Messages.Add(ctx, r.row())
	if err == nil && !isNew {
		isNew, err = r.replaceBlocked(ctx)
	}
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	if r.entry.kind != user.KindApplication || r.IsBlocked || r.entry.sender == r.Me || r.isMuted(r.entry.sender) {
		return Outcome{Kept: true}, nil
	}
	return Outcome{Kept: true}, r.tell(ctx, eventChat, vocab.Doc{})
}

// replaceBlocked stores a member's message in the place of the same one that came before in the
// name of a member that the user blocks, and reports whether it has done so.
func (r *receiver) replaceBlocked(ctx context.Context) (bool, error) {
	row := r.row()
	like, err := r.tx.Messages.FindLike(ctx, row)
	at := slices.IndexFunc(like, func(e user.InboxEntry) bool { return e.Conversation != nil && bytes.Equal(e.Hash, row.Hash) })
	if err != nil || at < 0 || r.IsBlocked || !like[at].Blocked || like[at].Seq != nil || like[at].Sender == row.Sender {
		return false, err
	}
	return true, r.tx.Messages.Place(ctx, like[at], row)
}

// keepInOrder stores a message of a conversation without a host, numbered in the order of
// arrival. If two commits were made in one epoch, it stores both, and the devices apply the first
// one that is valid. A message of an outsider does not change the epoch, and counts towards the
// bound unplaced.
func (r *receiver) keepInOrder(ctx context.Context) (Outcome, error) {
	j := r.conversation
	members, err := r.tx.Conversations.ListMembers(ctx, j.ID)
	if err != nil {
		return Outcome{}, err
	}
	if full, err := r.findOutside(ctx, members); err != nil || full {
		return Outcome{Reason: TooMany}, err
	}
	r.entry.seq = j.LastSeq + 1
	isNew, err := r.tx.Messages.Add(ctx, r.row())
	if err == nil && !isNew && !j.Confirmed && r.entry.sender != r.Me {
		return r.keepCopy(ctx)
	}
	if err == nil && !isNew {
		isNew, err = r.takeOver(ctx, members)
	}
	if err != nil || !isNew {
		return Outcome{Reason: OutdatedMessage}, err
	}
	reason := r.lateness()
	if r.outside {
		j.LastSeq = r.entry.seq
	} else if err := r.noteNamed(ctx, members); err != nil {
		return Outcome{}, err
	} else {
		r.advance(j)
	}
	if err := r.saveState(ctx); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tellMessage(ctx, true)
}

// keepCopy stores a message that another actor has sent before, in a conversation that no device of
// the user has joined. Any actor may have made such a conversation, and have named its members. So
// the message stays outside of it until Joined.Confirm decides between the senders.
func (r *receiver) keepCopy(ctx context.Context) (Outcome, error) {
	row := r.row()
	like, err := r.tx.Messages.FindLike(ctx, row)
	isOwn := func(e user.InboxEntry) bool { return bytes.Equal(e.Hash, row.Hash) && e.Sender == row.Sender }
	if err != nil || slices.ContainsFunc(like, isOwn) {
		return Outcome{Reason: OutdatedMessage}, err
	}
	r.conversation, r.entry.seq = nil, 0
	return r.keepUnplaced(ctx, UnknownGroup)
}

// takeOver stores a member's message in the place of the same one that came before in the name of
// an outsider or of an actor that the user blocks, and reports whether it has done so. Otherwise
// such an actor could keep a message from the user by sending it first.
func (r *receiver) takeOver(ctx context.Context, members []user.ConversationMember) (bool, error) {
	row := r.row()
	like, err := r.tx.Messages.FindLike(ctx, row)
	at := slices.IndexFunc(like, func(e user.InboxEntry) bool { return e.Seq != nil && bytes.Equal(e.Hash, row.Hash) })
	if err != nil || at < 0 || r.outside || r.IsBlocked {
		return false, err
	}
	wasOutside, err := r.isOutsider(ctx, members, like[at].Sender)
	if err != nil || like[at].Sender == row.Sender || !wasOutside && !like[at].Blocked {
		return false, err
	}
	r.entry.seq = *like[at].Seq
	return true, r.tx.Messages.Place(ctx, like[at], r.row())
}

// findOutside sets r.outside, and returns true if the sender is an outsider whose messages have
// reached the bound.
func (r *receiver) findOutside(ctx context.Context, members []user.ConversationMember) (full bool, err error) {
	sender := r.entry.sender
	if r.outside, err = r.isOutsider(ctx, members, sender); err != nil || !r.outside {
		return false, err
	}
	waiting, err := r.tx.Messages.CountOutside(ctx, r.conversation.ID)
	if err != nil {
		return false, err
	}
	return unplaced.isReached(ctx, r.tx, waiting, sender)
}

// isOutsider reports whether an actor is no member. Anybody may know the id of a group, so a
// message of the group does not make its sender a member. The sender of a Welcome counts as a
// member, even if the conversation began before senders of Welcomes were stored as members.
func (r *receiver) isOutsider(ctx context.Context, members []user.ConversationMember, actor vocab.ID) (bool, error) {
	if slices.ContainsFunc(members, func(m user.ConversationMember) bool { return m.Actor == actor }) {
		return false, nil
	}
	invites, err := r.tx.Welcomes.IsInviter(ctx, r.conversation.ID, actor)
	return !invites, err
}
