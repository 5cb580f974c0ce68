package conversation

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Commit asks a conversation to end its epoch.
type Commit struct {
	Caller    vocab.ID
	Key       string   // of idempotency
	Message   []byte   // a PublicMessage, so that its proposals can be judged
	GroupInfo []byte   // of the epoch that the commit begins, with the ratchet tree
	Welcomes  [][]byte // for the devices that it adds
	External  bool     // a device of a member that has lost its state joins again
}

// commit is a Commit on its way through the mailbox.
type commit struct {
	Commit
	registry *Registry
	at       Place
	message  *mls.PublicMessage
	next     *mls.GroupInfo
	welcomes []*mls.Welcome
	actors   map[vocab.ID]*vocab.Actor // of the devices that it adds
	host     vocab.ID
	rule     audience.Rule // of the host, for conversations of two
	now      time.Time
	accepted Accepted
}

// Commit waits for the turn of a commit, and returns where it stands in the log. Of two commits of
// one epoch the second is refused with a Conflict.
func (r *Registry) Commit(ctx context.Context, at Place, c Commit) (Accepted, error) {
	do := &commit{Commit: c, registry: r, at: at, host: r.Actors.ID(at.Host), rule: r.ruleOf(at.Host), now: r.Now()}
	if err := do.parse(); err != nil {
		return Accepted{}, err
	}
	if err := do.findAdded(ctx); err != nil {
		return Accepted{}, err
	}
	err := r.submit(ctx, at, do)
	if err == nil && do.accepted.Replayed {
		r.metrics.replays.Inc()
	}
	return do.accepted, err
}

func (c *commit) name() string {
	if c.External {
		return "external_commit"
	}
	return "commit"
}

// parse reads what does not depend on the conversation.
func (c *commit) parse() (err error) {
	if c.Key == "" {
		return fault.New(fault.Invalid, "a commit needs an Idempotency-Key: its answer may get lost").WithCode("idempotency_key_missing")
	}
	for _, part := range append([][]byte{c.Message, c.GroupInfo}, c.Welcomes...) {
		if len(part) > maxCommit {
			return fault.New(fault.TooLarge, "a commit, a GroupInfo and a Welcome have 1 MiB each at most")
		}
	}
	header, err := mls.ReadHeader(c.Message)
	if err != nil {
		return badMessage(err, "/commit")
	}
	if header.WireFormat != mls.FormatPublicMessage || header.ContentType != mls.ContentCommit {
		return unprocessable("commit_not_public", "a commit is a PublicMessage, so that the server can tell what it changes").At("/commit")
	}
	if c.message, err = mls.ParsePublicMessage(c.Message); err != nil {
		return badMessage(err, "/commit")
	}
	if c.next, err = mls.ParseGroupInfo(c.GroupInfo); err != nil {
		return unprocessable("bad_group_info", fault.Public(err)).At("/groupInfo")
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

// digest stands for all that the caller sent.
func (c *commit) digest() []byte {
	return digestOf(append([][]byte{[]byte(c.name()), c.Message, c.GroupInfo}, c.Welcomes...)...)
}

func (c *commit) apply(ctx context.Context, tx *db.Tx, to *db.HostedConversation) error {
	key, digest := keyOf(to, c.Caller, c.name(), c.Key), c.digest()
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
	change, err := c.judge(ctx, tx, to, member)
	if err != nil {
		return err
	}
	if err := c.write(ctx, tx, to, change); err != nil {
		return err
	}
	return storeAnswer(ctx, tx, key, digest, c.accepted, c.now)
}

// checkEpoch refuses a commit of another group or epoch than the conversation is in.
func (c *commit) checkEpoch(ctx context.Context, tx *db.Tx, to *db.HostedConversation) error {
	if err := checkActive(to); err != nil {
		return err
	}
	if group := string(c.message.GroupID); group != to.GroupID {
		if slices.Contains(to.FormerGroups, group) {
			return conflictWith(to, "former_group", "the conversation has a new MLS group since it was reset")
		}
		return errWrongGroup
	}
	if c.message.Epoch == uint64(to.Epoch) {
		return nil
	}
	refusal := conflictWith(to, "epoch_conflict", "the conversation is in another epoch: apply the commits that are missing, then commit again")
	if c.message.Epoch > math.MaxInt64 || c.message.Epoch > uint64(to.Epoch) {
		return refusal
	}
	var err error
	refusal.Missing, err = tx.CommitsFrom(ctx, to.ID, to.Generation, int64(c.message.Epoch), mostLogged, maxMissing)
	if err != nil {
		return err
	}
	return refusal
}

// write ends the epoch: from here on nothing is refused.
func (c *commit) write(ctx context.Context, tx *db.Tx, to *db.HostedConversation, change roster) error {
	hash, previous := hashOf(c.Message), to.LastHash
	advanced, err := tx.AdvanceEpoch(ctx, *to, hash, c.GroupInfo, c.now)
	if err != nil {
		return err
	}
	if !advanced { // the row is locked
		return fault.New(fault.Internal, "the conversation changed while it was locked")
	}
	epoch := to.Epoch
	to.Epoch, to.LastSeq, to.LastHash, to.GroupInfo = to.Epoch+1, to.LastSeq+1, hash, c.GroupInfo
	c.accepted = Accepted{Seq: to.LastSeq, Epoch: to.Epoch, Generation: to.Generation}
	entry := db.LogEntry{Seq: to.LastSeq, Generation: to.Generation, Epoch: epoch, Kind: db.KindCommit, Sender: c.Caller, Content: c.Message, Hash: hash, At: c.now}
	if err := tx.AddLogEntries(ctx, to.ID, entry); err != nil {
		return err
	}
	if err := change.write(ctx, tx, to, c.actors, c.now); err != nil {
		return err
	}
	if err := c.upgrade(ctx, tx, to, change); err != nil {
		return err
	}
	if c.External {
		if err := tx.NoteRejoin(ctx, to.ID, c.Caller, c.now); err != nil {
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

// writeWelcomes keeps a copy of each Welcome for each device that it lets in.
func (c *commit) writeWelcomes(ctx context.Context, tx *db.Tx, to *db.HostedConversation, change roster) (all []db.Welcome, err error) {
	for _, a := range change.added {
		at := slices.IndexFunc(c.welcomes, func(w *mls.Welcome) bool { return a.isIn(w) })
		w := db.Welcome{ID: uuid.Must(uuid.NewV7()), Conversation: to.ID, Recipient: a.actor, KeyPackage: a.ref, Content: c.Welcomes[at], CreatedAt: c.now}
		if err := tx.AddWelcome(ctx, w); err != nil {
			return nil, err
		}
		all = append(all, w)
		if a.actor == c.host {
			if err := tx.AddEvent(ctx, newEvent(eventWelcome, to, c.host, c.host, vocab.Doc{"welcomeId": w.ID.String()}, c.now)); err != nil {
				return nil, err
			}
		}
	}
	return all, tx.AddEvent(ctx, newEvent(eventCommit, to, c.host, c.Caller, vocab.Doc{"seq": to.LastSeq, "epoch": to.Epoch}, c.now))
}

func (a addition) isIn(w *mls.Welcome) bool {
	return slices.ContainsFunc(w.KeyPackages, func(ref []byte) bool { return bytes.Equal(ref, a.ref) })
}
