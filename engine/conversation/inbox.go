package conversation

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Arrival is an activity that a user has received and that concerns a conversation.
type Arrival struct {
	User      vocab.Username
	Me        vocab.ID
	Activity  *vocab.Activity
	Sender    *vocab.Actor // the author of the activity
	IsBlocked bool         // the user blocks the sender, or the operator refuses the author of the message
	Now       time.Time
	Applied   time.Time // the deliveries that the activity causes are due from this time on

	EncryptedChat audience.Rule // the user's rule for encrypted conversations of two

	// Tells reports whether an event may be added. The parameter trust says how far the user
	// trusts the actor who causes the event. If Tells is nil, all events are permitted.
	Tells func(trust string) bool

	Refuses func(vocab.ID) bool // reports whether the operator refuses an actor
	Mutes   func(vocab.ID) bool // reports whether the user mutes an actor; nil: the user mutes nobody
}

func (a Arrival) tells(trust string) bool { return a.Tells == nil || a.Tells(trust) }

func (a Arrival) isMuted(actor vocab.ID) bool { return a.Mutes != nil && a.Mutes(actor) }

// Reasons why a user's devices cannot use a message, or cannot use it yet.
const (
	FutureEpoch     = "future_epoch"     // the message is stored; commits before it are missing
	PastEpoch       = "past_epoch"       // the message is stored; its epoch or group is too old
	UnknownGroup    = "unknown_group"    // no conversation of the user has the message's group
	WrongGroup      = "wrong_group"      // the message's group is not a group of its conversation
	UnknownPackage  = "unknown_package"  // the user does not have the key package of the Welcome
	NotMember       = "not_member"       // the sender is no member of the conversation
	Contradiction   = "contradiction"    // another message has the same number, or another commit was made in the same epoch
	FrozenCopy      = "frozen"           // the copy is frozen, because the host was proven to tell members different things
	TooMany         = "too_many"         // too many messages or invitations wait; see type bound
	Unreadable      = "unreadable"       // the server cannot read the message, but may store it
	BlockedSender   = "blocked"          // the user blocks its sender, or the operator refuses it
	HostedByUser    = "hosted"           // a conversation the user hosts had or will have its group
	Unordered       = "unordered"        // the user hosts its group, and the conversation refused it
	OutdatedMessage = "already_received" // the same message was received before
)

// Outcome is the result of receiving an activity.
type Outcome struct {
	Kept       bool
	Reason     string // why the user's devices cannot use it; empty if they can
	Mislabeled bool   // its labels contradict its MLS header; the header decides
}

func refused(reason string) (Outcome, error) { return Outcome{Reason: reason}, nil }

// ReceiveEntry stores a message that the host of a conversation has put into its log, or a
// Welcome to the conversation.
func ReceiveEntry(ctx context.Context, tx *user.Tx, a Arrival) (o Outcome, err error) {
	e, err := readEntry(a.Activity)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { o.Mislabeled = e.mislabeled }()
	if err := tx.Messages.Lock(ctx); err != nil {
		return Outcome{}, err
	}
	j, err := tx.Joined.FindAt(ctx, a.Activity.Target.ID)
	if err != nil {
		return Outcome{}, err
	}
	blocked, err := tx.Blocks.FindAmong(ctx, []vocab.ID{e.sender})
	if err != nil {
		return Outcome{}, err
	}
	r := &receiver{tx: tx, Arrival: a, entry: e, conversation: j}
	r.IsBlocked = r.IsBlocked || blocked[e.sender]
	switch {
	case e.kind == user.KindWelcome:
		return r.takeWelcome(ctx)
	case j == nil:
		return refused(UnknownGroup)
	case j.Status == user.StatusFrozen:
		return refused(FrozenCopy)
	}
	return r.takeMessage(ctx)
}

// receiver stores one entry in a user's database.
type receiver struct {
	Arrival
	tx           *user.Tx
	fills        bool // the entry was fetched to fill a gap that is already noted
	outside      bool // the conversation has no host, and the sender is no member of it
	entry        *entry
	conversation *user.JoinedConversation // nil if the user's database does not have it
}

// takeMessage stores a message under the number that its host gave it.
func (r *receiver) takeMessage(ctx context.Context) (Outcome, error) {
	j := r.conversation
	if fits, err := r.fitsGroup(ctx); err != nil || !fits {
		return Outcome{Reason: WrongGroup}, err
	}
	row := r.row()
	others, copies, err := r.findLike(ctx, row)
	if err != nil {
		return Outcome{}, err
	}
	early := slices.IndexFunc(others, func(o user.InboxEntry) bool { return string(o.Hash) == string(row.Hash) })
	if i := slices.IndexFunc(others, func(o user.InboxEntry) bool { return o.Seq != nil && string(o.Hash) != string(row.Hash) }); i >= 0 {
		return r.judgeContradiction(ctx, others[i].Receipt)
	}
	if early >= 0 && others[early].Seq != nil {
		return refused(OutdatedMessage)
	}
	if broken, err := r.breaksChain(ctx, row); err != nil || broken {
		return Outcome{Reason: Contradiction}, err
	}
	if early >= 0 {
		err = r.tx.Messages.Place(ctx, others[early], row)
	} else {
		_, err = r.tx.Messages.Add(ctx, row)
	}
	if err != nil {
		return Outcome{}, err
	}
	if err := r.tx.Messages.DropCopies(ctx, copies); err != nil {
		return Outcome{}, err
	}
	reason := r.lateness()
	r.advance(j)
	if err := r.saveState(ctx); err != nil {
		return Outcome{}, err
	}
	if err := r.sendHeld(ctx); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tellMessage(ctx, early < 0 || others[early].Conversation == nil || others[early].Sender != r.entry.sender)
}

// findLike returns the stored messages that may be the same as row, or contradict it (see
// Messages.FindLike). The result "copies" has further ones without a conversation: those of other
// senders, and that of row's sender if the conversation has the message already. As long as no
// device of the user has joined, findLike leaves out those of other senders, and all if row's
// sender is no member. So an invitation cannot take over messages of other actors.
func (r *receiver) findLike(ctx context.Context, row user.InboxEntry) (others, copies []user.InboxEntry, err error) {
	all, err := r.tx.Messages.FindLike(ctx, row)
	unplaced := slices.IndexFunc(all, func(o user.InboxEntry) bool { return o.Conversation == nil })
	if err != nil || unplaced < 0 {
		return all, nil, err
	}
	others, copies = slices.Clip(all[:unplaced]), all[unplaced:]
	last := len(copies) - 1
	isOwn := copies[last].Sender == row.Sender
	if !r.conversation.Confirmed {
		member, err := r.tx.Conversations.FindMember(ctx, r.conversation.ID, row.Sender)
		if err != nil || !isOwn || !member.IsIn() {
			return others, nil, err
		}
		copies, last = copies[last:], 0
	}
	if isOwn && !slices.ContainsFunc(others, func(o user.InboxEntry) bool { return bytes.Equal(o.Hash, row.Hash) }) {
		others, copies = append(others, copies[last]), copies[:last]
	}
	return others, copies, nil
}

// fitsGroup reports whether the message belongs to an MLS group of its conversation: the present
// one, a former one, or the new one after a reset. So no host can bring a message into another
// conversation.
func (r *receiver) fitsGroup(ctx context.Context) (bool, error) {
	j, e := r.conversation, r.entry
	switch {
	case e.generation == j.Generation:
		return e.group == j.GroupID, nil
	case e.generation < j.Generation:
		return slices.Contains(j.FormerGroups, e.group), nil
	case len(j.FormerGroups) >= maxFormer:
		return false, nil
	}
	taken, err := r.tx.Joined.IsGroupTaken(ctx, e.group)
	return !taken, err
}

// lateness returns FutureEpoch or PastEpoch if the user's devices cannot read the message in the
// present epoch of the user's copy of the conversation. Otherwise it returns an empty string. The
// copy is at epoch 0 if it has only a Welcome and the host did not name the Welcome's epoch. Then
// no message of the present generation counts as too early.
func (r *receiver) lateness() string {
	j, e := r.conversation, r.entry
	switch {
	case e.generation > j.Generation, e.generation == j.Generation && e.epoch > j.Epoch && j.Epoch > 0:
		return FutureEpoch
	case e.generation < j.Generation, e.epoch < j.Epoch-pastEpochs:
		return PastEpoch
	}
	return ""
}

// advance updates j.LastSeq and j.Epoch if the entry goes beyond them. A commit counts with the
// epoch that it begins. If the entry is of a later generation, advance also changes j to the
// entry's group and generation.
func (r *receiver) advance(j *user.JoinedConversation) {
	e := r.entry
	j.LastSeq = max(j.LastSeq, e.seq)
	if e.generation > j.Generation {
		j.FormerGroups = append(j.FormerGroups, j.GroupID)
		j.GroupID, j.Generation, j.Epoch = e.group, e.generation, e.epoch
		setStatus(j, user.StatusActive, "")
	}
	if e.generation == j.Generation {
		reached := e.epoch
		if e.kind == user.KindCommit {
			reached++
		}
		j.Epoch = max(j.Epoch, reached)
	}
}

// setStatus sets the status of a conversation. A closed conversation stays closed.
func setStatus(j *user.JoinedConversation, status, resetGroup string) {
	if j.Status != user.StatusClosed {
		j.Status, j.ResetGroupID = status, resetGroup
	}
}

// saveState stores the state of the conversation and its roster. It adds one event about all actors
// that are no members any more, if the user has joined the conversation or is one of them. If the
// copy has a gap, and the entry was not fetched to fill one, saveState also calls NoteBehind, so
// that the missing messages are read.
func (r *receiver) saveState(ctx context.Context) error {
	j, e := r.conversation, r.entry
	if e.roster != nil && e.seq >= j.RosterSeq {
		j.RosterSeq, j.Mixed = e.seq, e.roster.isMixed
		gone, err := r.tx.Joined.SetRoster(ctx, j.ID, e.roster.actors, e.roster.roles, e.seq)
		if err != nil {
			return err
		}
		if slices.Contains(gone, r.Me) || j.Confirmed && len(gone) > 0 {
			if err := r.tell(ctx, eventRemoved, vocab.Doc{"seq": e.seq, "removed": gone}); err != nil {
				return err
			}
		}
		if len(e.roster.foreign) > 0 {
			if err := r.tx.Hosted.NoteForeign(ctx, j.ID, e.roster.foreign); err != nil {
				return err
			}
		}
	}
	if e.kind == user.KindProposal {
		if err := r.tx.Conversations.AskToLeave(ctx, j.ID, e.sender); err != nil {
			return err
		}
	}
	whole, err := r.tx.Joined.Save(ctx, *j, r.Now)
	if err == nil && whole < j.LastSeq && !r.fills {
		r.tx.Joined.NoteBehind(j.ID, j.Host, true)
	}
	return err
}

// row returns the entry in the form in which it is stored.
func (r *receiver) row() user.InboxEntry {
	e := r.entry
	row := user.InboxEntry{Group: e.group, Generation: e.generation, Epoch: e.epoch, Kind: e.kind, Sender: e.sender, Object: e.object, Content: e.message, Hash: hashOf(e.message),
		Blocked: r.IsBlocked, At: r.Now}
	if e.seq > 0 {
		row.Seq = &e.seq
	}
	if j := r.conversation; j != nil {
		row.Conversation = &j.ID
		row.Receipt = e.provenReceipt(j.URI, hostKeys(r.Sender))
	}
	if row.Content == nil { // a report of a failure has no message
		row.Content = []byte{}
	}
	row.ContentAt = -1
	if r.Activity.Raw != nil {
		row.Activity, row.ContentAt = cutContent(r.Activity, e.message)
	}
	return row
}

// hostKeys returns the Ed25519 keys with which an actor may sign receipts.
func hostKeys(a *vocab.Actor) (keys []ed25519.PublicKey) {
	for _, k := range a.Keys {
		if !k.Asserts || k.Multibase == "" || !k.Owner.Same(a.ID) {
			continue
		}
		if key, err := signature.ParseMultikey(k.Multibase); err == nil {
			if key, is := key.(ed25519.PublicKey); is {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// tellMessage adds the events that tell the user's clients of a message. A commit of a blocked
// member adds an event, but all other messages of blocked actors add none. A message of a muted
// actor adds eventMessage alone, by which the devices read it; no event notifies the user.
func (r *receiver) tellMessage(ctx context.Context, isNew bool) error {
	e := r.entry
	switch {
	case e.kind == user.KindCommit && !(r.outside && r.IsBlocked):
		return r.tell(ctx, eventCommit, vocab.Doc{"seq": e.seq, "epoch": e.epoch + 1})
	case r.IsBlocked:
		return nil
	}
	if err := r.tell(ctx, eventMessage, vocab.Doc{"seq": e.seq, "kind": e.kind}); err != nil {
		return err
	}
	if e.kind != user.KindApplication || !isNew || e.sender == r.Me || r.isMuted(e.sender) {
		return nil
	}
	return r.tell(ctx, eventChat, vocab.Doc{"seq": e.seq})
}

// tell adds an event about the entry, or about the object that d names. The event holds only ids
// and numbers.
func (r *receiver) tell(ctx context.Context, kind string, d vocab.Doc) error {
	e, a := r.entry, r.Activity
	d["actorUri"], d["objectUri"] = string(e.sender), string(e.object)
	if a.ID != "" {
		d["activityUri"], d["activityType"] = string(a.ID), a.Type
	}
	j := r.conversation
	if j != nil {
		d["conversation"], d["conversationId"] = string(j.URI), j.ID.String()
	}
	trust, isIn := user.TrustStranger, hasJoined(j) && !r.outside
	if isIn || e.sender == r.Sender.ID { // an unknown host may name any sender
		var err error
		if trust, err = trustIn(ctx, r.tx, isIn, r.Me, e.sender); err != nil {
			return err
		}
	}
	if !r.tells(trust) {
		return nil
	}
	return r.tx.Events.Add(ctx, user.NewEvent(kind, user.SourceAP, trust, d, r.Now))
}
