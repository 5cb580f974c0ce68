package conversation

import (
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// InboxTx is what is needed of the transaction on a user's database, in which something of a
// conversation arrives.
type InboxTx interface {
	LogTx
	HostedByGroup(ctx context.Context, group string) (uuid.UUID, error)

	LockInbox(ctx context.Context) error
	AddInboxEntry(ctx context.Context, e db.InboxEntry) (bool, error)
	InboxEntriesLike(ctx context.Context, e db.InboxEntry) ([]db.InboxEntry, error)
	PlaceInboxEntry(ctx context.Context, arrival int64, e db.InboxEntry) error
	InboxHash(ctx context.Context, id uuid.UUID, seq int64) (hash, receipt []byte, err error)
	CountUnplaced(ctx context.Context, sender vocab.ID) (ofSender, all int, err error)
	PlaceGroup(ctx context.Context, id uuid.UUID, group string, last int64) (int64, error)

	JoinedAt(ctx context.Context, uri vocab.ID) (*db.JoinedConversation, error)
	JoinedByGroup(ctx context.Context, group string) (*db.JoinedConversation, error)
	IsGroupKnown(ctx context.Context, group string) (bool, error)
	AddJoined(ctx context.Context, j db.JoinedConversation, now time.Time) error
	SaveJoined(ctx context.Context, j db.JoinedConversation, now time.Time) (whole int64, err error)
	NoteBehind(id uuid.UUID, isGap bool)
	CountInvitations(ctx context.Context, host vocab.ID) (ofHost, all int, err error)

	ConversationMember(ctx context.Context, id uuid.UUID, actor vocab.ID) (*db.ConversationMember, error)
	JoinConversation(ctx context.Context, id uuid.UUID, actors []vocab.ID, role string, seq int64) error
	SetRoster(ctx context.Context, id uuid.UUID, actors []vocab.ID, roles []string, seq int64) error
	AskToLeave(ctx context.Context, id uuid.UUID, actor vocab.ID) error
	HasKeyPackage(ctx context.Context, ref []byte) (bool, error)
	TakeWelcome(ctx context.Context, w db.Welcome) (bool, error)
	UnplacedWelcome(ctx context.Context, sender, object vocab.ID) (*db.Welcome, error)
	PlaceWelcome(ctx context.Context, id, conversation uuid.UUID) error
	Blocked(ctx context.Context, actors []vocab.ID) (map[vocab.ID]bool, error)
	PairTx
	AddEvent(ctx context.Context, e db.Event) error
}

// Arrival is an activity of a conversation that reached a user.
type Arrival struct {
	User      vocab.Username
	Me        vocab.ID
	Activity  *vocab.Activity
	Sender    *vocab.Actor // whose activity it is
	IsBlocked bool         // the user blocks the sender
	Now       time.Time
	Applied   time.Time // what the user owes for it is owed from then on

	EncryptedChat audience.Rule // the user's, for conversations of two
}

// Reasons why a user's devices can do nothing, or nothing yet, with what came.
const (
	FutureEpoch     = "future_epoch"     // it is kept: the commits before it are missing
	PastEpoch       = "past_epoch"       // it is kept
	UnknownGroup    = "unknown_group"    // the user is not known to be in its group
	WrongGroup      = "wrong_group"      // it is of another group than its conversation
	UnknownPackage  = "unknown_package"  // a Welcome for a key package that the user has not
	NotMember       = "not_member"       // its sender is not in the conversation
	Contradiction   = "contradiction"    // another message has its number, or is the commit of its epoch
	FrozenCopy      = "frozen"           // its host was shown to tell members different things
	TooMany         = "too_many"         // its sender, or all, have too much waiting here
	Unreadable      = "unreadable"       // it is kept for clients that may understand it
	BlockedWelcome  = "blocked"          // a Welcome of an actor that the user blocks
	HostedByUser    = "hosted"           // of a group that the user put in order, or will
	Unordered       = "unordered"        // of a group that the user puts in order, and refused
	OutdatedMessage = "already_received" // the same message came before
)

// Outcome is what became of an arrival.
type Outcome struct {
	Kept   bool
	Reason string // why the user's devices can do nothing with it, empty when they can
}

func refused(reason string) (Outcome, error) { return Outcome{Reason: reason}, nil }

// ReceiveEntry keeps what the host of a conversation put into its log, or a Welcome to it.
func ReceiveEntry(ctx context.Context, tx InboxTx, a Arrival) (Outcome, error) {
	e, err := readEntry(a.Activity)
	if err != nil {
		return Outcome{}, err
	}
	if err := tx.LockInbox(ctx); err != nil {
		return Outcome{}, err
	}
	j, err := tx.JoinedAt(ctx, a.Activity.Target.ID)
	if err != nil {
		return Outcome{}, err
	}
	blocked, err := tx.Blocked(ctx, []vocab.ID{e.sender})
	if err != nil {
		return Outcome{}, err
	}
	r := &receiver{InboxTx: tx, Arrival: a, entry: e, conversation: j}
	r.IsBlocked = r.IsBlocked || blocked[e.sender]
	switch {
	case e.kind == db.KindWelcome:
		return r.takeWelcome(ctx)
	case j == nil:
		return refused(UnknownGroup)
	case j.Status == db.StatusFrozen:
		return refused(FrozenCopy)
	}
	return r.takeMessage(ctx)
}

// receiver is one entry on its way into a user's database.
type receiver struct {
	InboxTx
	Arrival
	entry        *entry
	conversation *db.JoinedConversation // nil: the user has not heard of it
}

// takeMessage keeps a message under the number that its host gave it.
func (r *receiver) takeMessage(ctx context.Context) (Outcome, error) {
	j := r.conversation
	if fits, err := r.fitsGroup(ctx); err != nil || !fits {
		return Outcome{Reason: WrongGroup}, err
	}
	row := r.row()
	others, err := r.InboxEntriesLike(ctx, row)
	if err != nil {
		return Outcome{}, err
	}
	early := slices.IndexFunc(others, func(o db.InboxEntry) bool { return string(o.Hash) == string(row.Hash) })
	if i := slices.IndexFunc(others, func(o db.InboxEntry) bool { return o.Seq != nil && string(o.Hash) != string(row.Hash) }); i >= 0 {
		return r.judgeContradiction(ctx, others[i].Receipt)
	}
	if early >= 0 && others[early].Seq != nil {
		return refused(OutdatedMessage)
	}
	if broken, err := r.breaksChain(ctx, row); err != nil || broken {
		return Outcome{Reason: Contradiction}, err
	}
	if early >= 0 {
		err = r.PlaceInboxEntry(ctx, others[early].Arrival, row)
	} else {
		_, err = r.AddInboxEntry(ctx, row)
	}
	if err != nil {
		return Outcome{}, err
	}
	reason := r.lateness()
	r.advance(j)
	if err := r.saveState(ctx); err != nil {
		return Outcome{}, err
	}
	return Outcome{Kept: true, Reason: reason}, r.tellMessage(ctx, early < 0)
}

// fitsGroup reports whether the message belongs to the MLS group that its conversation has, had,
// or has now that a reset is over. No host brings a message into another conversation.
func (r *receiver) fitsGroup(ctx context.Context) (bool, error) {
	j, e := r.conversation, r.entry
	switch {
	case e.generation == j.Generation:
		return e.group == j.GroupID, nil
	case e.generation < j.Generation:
		return slices.Contains(j.FormerGroups, e.group), nil
	}
	known, err := r.IsGroupKnown(ctx, e.group)
	return !known, err
}

// lateness says when the user's devices cannot read the message where they are. Epoch 0 is that of
// a copy that has only a Welcome whose host did not say its epoch.
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

// advance brings the state of a conversation to where the entry says that it is.
func (r *receiver) advance(j *db.JoinedConversation) {
	e := r.entry
	j.LastSeq = max(j.LastSeq, e.seq)
	if e.generation > j.Generation {
		j.FormerGroups = append(j.FormerGroups, j.GroupID)
		j.GroupID, j.Generation, j.Epoch = e.group, e.generation, e.epoch
		setStatus(j, db.StatusActive, "")
	}
	if e.generation == j.Generation {
		reached := e.epoch
		if e.kind == db.KindCommit {
			reached++
		}
		j.Epoch = max(j.Epoch, reached)
	}
}

// setStatus notes how a conversation stands. Closed is for good.
func setStatus(j *db.JoinedConversation, status, resetGroup string) {
	if j.Status != db.StatusClosed {
		j.Status, j.ResetGroupID = status, resetGroup
	}
}

// saveState writes down the state of the conversation and who is in it, and notes when messages
// are missing.
func (r *receiver) saveState(ctx context.Context) error {
	j, e := r.conversation, r.entry
	if e.roster != nil && e.seq >= j.RosterSeq {
		j.RosterSeq = e.seq
		if err := r.SetRoster(ctx, j.ID, e.roster.actors, e.roster.roles, e.seq); err != nil {
			return err
		}
	}
	if e.kind == db.KindProposal {
		if err := r.AskToLeave(ctx, j.ID, e.sender); err != nil {
			return err
		}
	}
	whole, err := r.SaveJoined(ctx, *j, r.Now)
	if err == nil && whole < j.LastSeq {
		r.NoteBehind(j.ID, true)
	}
	return err
}

// row returns the entry as it is kept.
func (r *receiver) row() db.InboxEntry {
	e := r.entry
	row := db.InboxEntry{Group: e.group, Generation: e.generation, Epoch: e.epoch, Kind: e.kind, Sender: e.sender, Object: e.object, Content: e.message, Hash: hashOf(e.message),
		Blocked: r.IsBlocked, At: r.Now}
	if e.seq > 0 {
		row.Seq = &e.seq
	}
	if j := r.conversation; j != nil {
		row.Conversation = &j.ID
		row.Receipt = e.provenReceipt(j.URI, hostKeys(r.Sender))
	}
	if row.Content == nil { // the receipt of a failure has none
		row.Content = []byte{}
	}
	row.ContentAt = -1
	if r.Activity.Raw != nil {
		row.Activity, row.ContentAt = cutContent(r.Activity, e.message)
	}
	return row
}

// hostKeys returns the Ed25519 keys by which an actor may prove what it says.
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

// tellMessage tells the user's programs. Of what a blocked actor says nobody is told.
func (r *receiver) tellMessage(ctx context.Context, isNew bool) error {
	e := r.entry
	switch {
	case e.kind == db.KindCommit:
		return r.tell(ctx, eventCommit, vocab.Doc{"seq": e.seq, "epoch": e.epoch + 1})
	case r.IsBlocked:
		return nil
	}
	if err := r.tell(ctx, eventMessage, vocab.Doc{"seq": e.seq, "kind": e.kind}); err != nil {
		return err
	}
	if e.kind != db.KindApplication || !isNew || e.sender == r.Me {
		return nil
	}
	return r.tell(ctx, eventChat, vocab.Doc{"seq": e.seq})
}

// tell adds an event about what came. It holds ids and numbers alone.
func (r *receiver) tell(ctx context.Context, kind string, d vocab.Doc) error {
	e, a := r.entry, r.Activity
	d["eventId"], d["actorUri"], d["objectUri"] = uuid.Must(uuid.NewV7()).String(), string(e.sender), string(e.object)
	if a.ID != "" {
		d["activityUri"], d["activityType"] = string(a.ID), a.Type
	}
	d["trust"] = "stranger"
	if j := r.conversation; j != nil {
		d["conversation"], d["conversationId"] = string(j.URI), j.ID.String()
		if j.Confirmed {
			d["trust"] = "contact"
		}
	}
	if e.sender == r.Me {
		d["trust"] = "self"
	}
	return r.AddEvent(ctx, db.Event{Type: kind, Source: "ap", Payload: d.JSON(), At: r.Now})
}
