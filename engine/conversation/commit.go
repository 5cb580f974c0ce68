package conversation

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Commit is a request to end the epoch of a conversation by an MLS commit.
type Commit struct {
	Caller    vocab.ID
	Key       string   // the Idempotency-Key
	Message   []byte   // a PublicMessage, whose proposals the host can check; in a mixed conversation (see View.Mixed) a PrivateMessage
	GroupInfo []byte   // describes the next epoch, with the ratchet tree; may be nil if Message is a PrivateMessage
	Welcomes  [][]byte // for the devices that the commit adds
	External  bool     // an external commit, by which a device that has lost its state joins again
	Declared
}

// Declared is the committer's statement of changes that the host cannot read in the message.
// Beside a PrivateMessage it names all changes. Beside a PublicMessage it names only members that
// have no device in the group, because no Remove proposal can name such a member. These members
// have not joined again after a reset.
type Declared struct {
	Added   [][]byte   // the key packages of the devices that the commit adds, without MLSMessages around them
	Removed []vocab.ID // the actors that have no device left in the group after the commit
}

// commit is a Commit with its parsed parts, while it waits in the mailbox or is being handled.
type commit struct {
	Commit
	registry *Registry
	at       Place
	header   mls.Header
	message  *mls.PublicMessage // nil if the commit is a PrivateMessage
	declared roster             // the parsed Declared
	next     *mls.GroupInfo     // the parsed GroupInfo; nil if the commit has none
	welcomes []*mls.Welcome
	actors   map[vocab.ID]*vocab.Actor // the owners of the devices that the commit adds
	late     bool                      // the commit did not fit the conversation's state; actors is empty
	host     vocab.ID
	rule     audience.Rule // the host's rule for encrypted conversations of two
	now      time.Time
	accepted Accepted
}

// Commit queues a commit, waits until it is handled, and returns its place in the log. If another
// commit of the same epoch was accepted before, this one is refused with a Conflict.
func (r *Registry) Commit(ctx context.Context, at Place, c Commit) (Accepted, error) {
	do := &commit{Commit: c, registry: r, at: at, host: r.Actors.ID(at.Host), rule: r.ruleOf(at.Host), now: r.Now()}
	if err := do.parse(); err != nil {
		return Accepted{}, err
	}
	if len(do.listAdded()) > 0 {
		if err := do.prepare(ctx); err != nil {
			return Accepted{}, err
		}
	}
	err := r.submit(ctx, at, do)
	return r.metrics.countReplay(do.accepted, err)
}

// prepare fetches the actors whose devices the commit adds. It refuses a caller that is no
// member, or that the host blocks. It fetches nothing for a late commit. If the commit was
// accepted before, apply repeats the stored answer, and otherwise it refuses the commit.
func (c *commit) prepare(ctx context.Context) error {
	err := c.registry.Store.Read(ctx, c.at.Host, func(ctx context.Context, tx *user.Tx) error {
		to, err := readAs(ctx, tx, c.at.ID, c.Caller)
		if err == nil {
			c.late = checkActive(to) != nil || string(c.header.GroupID) != to.GroupID || c.header.Epoch != uint64(to.Epoch)
		}
		return err
	})
	if err != nil || c.late {
		return err
	}
	return c.findAdded(ctx)
}

func (c *commit) name() string {
	if c.External {
		return "external_commit"
	}
	return "commit"
}

// parse reads and checks all that does not depend on the state of the conversation.
func (c *commit) parse() (err error) {
	if c.Key == "" {
		return fault.New(fault.Invalid, "a commit needs an Idempotency-Key: its answer may get lost").WithCode("idempotency_key_missing")
	}
	for _, part := range append([][]byte{c.Message, c.GroupInfo}, c.Welcomes...) {
		if len(part) > maxCommit {
			return fault.New(fault.TooLarge, "a commit, a GroupInfo and a Welcome have 1 MiB each at most")
		}
	}
	if c.header, err = mls.ReadHeader(c.Message); err != nil {
		return badMessage(err, "/commit")
	}
	switch {
	case c.header.ContentType != mls.ContentCommit:
		return errNotPublic
	case c.header.WireFormat == mls.FormatPrivateMessage:
		err = c.readDeclared()
	case len(c.Added) > 0:
		return badRoster("a PublicMessage tells itself what it adds: leave added out", "/added")
	default:
		if c.message, err = mls.ParsePublicMessage(c.Message); err != nil {
			return badMessage(err, "/commit")
		}
		err = c.readRemoved()
	}
	if err != nil {
		return err
	}
	if c.GroupInfo != nil || c.message != nil {
		if c.next, err = mls.ParseGroupInfo(c.GroupInfo); err != nil {
			return unprocessable("bad_group_info", fault.Public(err)).At("/groupInfo")
		}
	}
	for _, content := range c.Welcomes {
		w, err := mls.ParseWelcome(content)
		if err != nil {
			return badMessage(err, "/welcomes")
		}
		c.welcomes = append(c.welcomes, w)
	}
	return nil
}

func badMessage(err error, pointer string) error {
	return fault.Wrap(fault.Invalid, fault.Public(err), err).WithCode("bad_mls_message").At(pointer)
}

// digest returns a hash of all that the caller sent.
func (c *commit) digest() []byte {
	parts := append([][]byte{[]byte(c.name()), c.Message, c.GroupInfo}, c.Welcomes...)
	if len(c.Added)+len(c.Removed) > 0 {
		parts = append(parts, digestOf(c.Added...))
		for _, id := range c.Removed {
			parts = append(parts, []byte(id))
		}
	}
	return digestOf(parts...)
}

func (c *commit) apply(ctx context.Context, tx *user.Tx, to *user.HostedConversation) error {
	key := c.answerKey()
	digest := c.digest()
	member, err := memberOf(ctx, tx, to, c.Caller)
	if err != nil {
		return err
	}
	stored, err := storedAnswer(ctx, tx, key, digest, c.now)
	if err != nil {
		return err
	}
	if stored != nil {
		c.accepted = *stored
		return nil
	}
	if err := c.checkEpoch(ctx, tx, to); err != nil {
		return err
	}
	if err := checkFraming(to, c.message == nil); err != nil {
		return err
	}
	change, err := c.judge(ctx, tx, to, member)
	if err != nil {
		return err
	}
	if err := c.write(ctx, tx, to, change); err != nil {
		return err
	}
	return storeAnswer(tx, key, digest, c.accepted, c.now)
}

func (c *commit) askedBy() vocab.ID { return c.Caller }

func (c *commit) answerKey() string { return keyOf(c.at.ID, c.Caller, c.name(), c.Key) }

// checkEpoch refuses a commit unless the conversation is active and the commit was made in the
// conversation's present group and epoch.
func (c *commit) checkEpoch(ctx context.Context, tx *user.Tx, to *user.HostedConversation) error {
	if err := checkActive(to); err != nil {
		return err
	}
	if group := string(c.header.GroupID); group != to.GroupID {
		if slices.Contains(to.FormerGroups, group) {
			return conflictWith(to, "former_group", "the conversation has a new MLS group since it was reset")
		}
		return errWrongGroup
	}
	if c.header.Epoch == uint64(to.Epoch) && !c.late {
		return nil
	}
	refusal := conflictWith(to, "epoch_conflict", "the conversation is in another epoch: apply the commits that are missing, then commit again")
	if c.header.Epoch > math.MaxInt64 || c.header.Epoch > uint64(to.Epoch) {
		return refusal
	}
	var err error
	refusal.Missing, err = tx.Hosted.ListCommits(ctx, to.ID, to.Generation, int64(c.header.Epoch), mostLogged, maxMissing)
	if err != nil {
		return err
	}
	refusal.HasWinner = len(refusal.Missing) > 0 && refusal.Missing[0].Epoch == int64(c.header.Epoch)
	return refusal
}

// write ends the epoch. The caller has done all checks before, so write refuses nothing.
func (c *commit) write(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) error {
	previous := to.LastHash
	isMixed, err := c.isMixedAfter(ctx, tx, to, change)
	if err != nil {
		return err
	}
	if to.Mixed { // nobody has this commit yet, so no message that waits was made after it
		tx.Hosted.DropAllEarly(to.ID)
	}
	entry := endEpoch(tx, to, c.Caller, c.Message, user.NextEpoch{GroupInfo: c.GroupInfo, Mixed: isMixed}, c.now)
	c.accepted = Accepted{Seq: to.LastSeq, Epoch: to.Epoch, Generation: to.Generation}
	if err := change.write(ctx, tx, to, c.actors, c.now); err != nil {
		return err
	}
	if err := c.upgrade(ctx, tx, to, change); err != nil {
		return err
	}
	if c.External {
		if err := tx.Conversations.NoteRejoin(ctx, to.ID, c.Caller, c.now); err != nil {
			return err
		}
	}
	welcomes, err := c.writeWelcomes(ctx, tx, to, change)
	if err != nil {
		return err
	}
	f, err := newFanout(ctx, tx, c.registry.Deps, c.at.Host, to, to.LastSeq, c.now)
	if err != nil {
		return err
	}
	if err := f.tellEntries(ctx, tx, previous, entry); err != nil {
		return err
	}
	return f.tellWelcomes(ctx, tx, c.Caller, welcomes)
}

// endEpoch ends the epoch of a conversation with a commit, and returns the commit's entry in the
// log.
func endEpoch(tx *user.Tx, to *user.HostedConversation, by vocab.ID, commit []byte, next user.NextEpoch, now time.Time) user.LogEntry {
	e := user.LogEntry{Seq: to.LastSeq + 1, Generation: to.Generation, Epoch: to.Epoch, Kind: user.KindCommit, Sender: by, Content: commit, Hash: hashOf(commit), At: now}
	tx.Hosted.EndEpoch(*to, e, next)
	to.Epoch, to.LastSeq, to.LastHash, to.GroupInfo, to.Mixed = to.Epoch+1, e.Seq, e.Hash, next.GroupInfo, next.Mixed
	return e
}

// writeWelcomes stores one copy of a Welcome for each device that the commit adds. It also adds
// events for the host: one about each Welcome for a device of the host, one about the actors that
// are no members any more, and one about the commit.
func (c *commit) writeWelcomes(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) (all []user.Welcome, err error) {
	for _, a := range change.added {
		at := slices.IndexFunc(c.welcomes, func(w *mls.Welcome) bool { return a.isIn(w) })
		w := user.Welcome{ID: uuid.Must(uuid.NewV7()), Conversation: to.ID, Recipient: a.actor, KeyPackage: a.ref, Content: c.Welcomes[at], CreatedAt: c.now}
		if err := tx.Welcomes.Add(ctx, w); err != nil {
			return nil, err
		}
		all = append(all, w)
		if a.actor == c.host {
			if err := tx.Events.Add(ctx, newEvent(eventWelcome, to, c.host, c.host, vocab.Doc{"welcomeId": w.ID.String()}, c.now)); err != nil {
				return nil, err
			}
		}
	}
	if len(change.left) > 0 {
		if err := tx.Events.Add(ctx, newEvent(eventRemoved, to, c.host, c.Caller, vocab.Doc{"seq": to.LastSeq, "removed": change.left}, c.now)); err != nil {
			return nil, err
		}
	}
	return all, tx.Events.Add(ctx, newEvent(eventCommit, to, c.host, c.Caller, vocab.Doc{"seq": to.LastSeq, "epoch": to.Epoch}, c.now))
}

func (a addition) isIn(w *mls.Welcome) bool {
	return w.Suite == a.suite && slices.ContainsFunc(w.KeyPackages, func(ref []byte) bool { return bytes.Equal(ref, a.ref) })
}
