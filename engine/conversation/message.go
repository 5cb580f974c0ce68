package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Message is ciphertext for the members of a conversation, or a member's proposal to be removed.
type Message struct {
	Caller  vocab.ID
	Content []byte

	header   mls.Header
	proposal *mls.PublicMessage // nil in ciphertext
	hash     []byte
	accepted Accepted
}

func (m *Message) name() string { return "message" }

// Send waits for the turn of a message, and returns where it stands in the log. One that is there
// already keeps its place.
func (r *Registry) Send(ctx context.Context, at Place, m Message) (Accepted, error) {
	if err := m.parse(); err != nil {
		return Accepted{}, err
	}
	err := r.submit(ctx, at, &m)
	if err == nil && m.accepted.Replayed {
		r.metrics.replays.Inc()
	}
	return m.accepted, err
}

func (m *Message) parse() (err error) {
	if len(m.Content) > maxText {
		return fault.New(fault.TooLarge, "a message has 256 KiB at most")
	}
	if m.header, err = mls.ReadHeader(m.Content); err != nil {
		return badMessage(err, "/message")
	}
	m.hash = hashOf(m.Content)
	switch {
	case m.header.WireFormat == mls.FormatPrivateMessage && m.header.ContentType == mls.ContentApplication:
		return nil
	case m.header.WireFormat != mls.FormatPublicMessage || m.header.ContentType != mls.ContentProposal:
		return unprocessable("not_a_message", "a message is a PrivateMessage with application data, or a member's proposal to be removed").At("/message")
	}
	if m.proposal, err = mls.ParsePublicMessage(m.Content); err != nil {
		return badMessage(err, "/message")
	}
	if m.proposal.Proposals[0].Type != mls.ProposalRemove || m.proposal.Sender.Type != mls.SenderMember {
		return unprocessable("bad_proposal", "a proposal asks for the removal of its sender").At("/message")
	}
	return nil
}

// IsCiphertext reports whether content is encrypted application data.
func IsCiphertext(content []byte) bool {
	h, err := mls.ReadHeader(content)
	return err == nil && h.WireFormat == mls.FormatPrivateMessage && h.ContentType == mls.ContentApplication
}

func (m *Message) kind() string {
	if m.proposal != nil {
		return db.KindProposal
	}
	return db.KindApplication
}

// acceptMessages accepts what it can of messages, in their order and together.
func (d Deps) acceptMessages(ctx context.Context, tx LogTx, at Place, c *db.HostedConversation, tasks []*task) error {
	if c == nil {
		for _, t := range tasks {
			t.err = errNoConversation
		}
		return nil
	}
	callers, hashes := []vocab.ID{}, [][]byte{}
	for _, t := range tasks {
		m := t.do.(*Message)
		callers, hashes = append(callers, m.Caller), append(hashes, m.hash)
	}
	host := d.Actors.ID(at.Host)
	members, err := tx.MembersAmong(ctx, c.ID, callers)
	if err != nil {
		return err
	}
	logged, err := tx.LoggedMessages(ctx, c.ID, hashes)
	if err != nil {
		return err
	}
	b := &batch{Deps: d, at: at, host: host, conversation: c, previous: c.LastHash, members: members, logged: map[string]db.LoggedMessage{}, now: d.Now()}
	for _, l := range logged {
		b.logged[string(l.Hash)] = l
	}
	for _, t := range tasks {
		if t.err = b.accept(t.do.(*Message)); t.err != nil && !isRefusal(t.err) {
			return t.err
		}
	}
	return b.write(ctx, tx)
}

// batch is messages that are accepted together.
type batch struct {
	Deps
	at           Place
	host         vocab.ID
	previous     []byte // hash of the message before them
	conversation *db.HostedConversation
	members      map[vocab.ID]db.ConversationMember
	logged       map[string]db.LoggedMessage // by the hash of their content
	entries      []db.LogEntry
	now          time.Time
}

// accept gives a message its number, or refuses it.
func (b *batch) accept(m *Message) error {
	c := b.conversation
	var member *db.ConversationMember
	if is, known := b.members[m.Caller]; known {
		member = &is
	}
	if err := checkMember(member); err != nil {
		return err
	}
	if c.Mode == db.ModeFederated {
		return unprocessable("not_upgraded", "nobody else is in the MLS group yet: add the other actor first").At("/message")
	}
	if l, known := b.logged[string(m.hash)]; known {
		if l.Sender != m.Caller {
			return conflictWith(c, "message_taken", "the message is another member's")
		}
		m.accepted = Accepted{Seq: l.Seq, Epoch: c.Epoch, Generation: c.Generation, Replayed: true}
		return nil
	}
	if err := checkMessageEpoch(c, m); err != nil {
		return err
	}
	if err := m.checkLeave(c); err != nil {
		return err
	}
	c.LastSeq++
	b.entries = append(b.entries, db.LogEntry{Seq: c.LastSeq, Generation: c.Generation, Epoch: int64(m.header.Epoch), Kind: m.kind(), Sender: m.Caller, Content: m.Content, Hash: m.hash, At: b.now})
	b.logged[string(m.hash)] = db.LoggedMessage{Seq: c.LastSeq, Sender: m.Caller}
	m.accepted = Accepted{Seq: c.LastSeq, Epoch: c.Epoch, Generation: c.Generation}
	return nil
}

// checkMessageEpoch refuses a message of another group, of an epoch that is still to come, and of
// one whose keys members have dropped.
func checkMessageEpoch(c *db.HostedConversation, m *Message) error {
	if err := checkActive(c); err != nil {
		return err
	}
	if group := string(m.header.GroupID); group != c.GroupID {
		if slices.Contains(c.FormerGroups, group) {
			return conflictWith(c, "former_group", "the conversation has a new MLS group since it was reset")
		}
		return errWrongGroup
	}
	switch now := uint64(c.Epoch); {
	case m.header.Epoch > now:
		return conflictWith(c, "future_epoch", "the conversation has not reached the epoch of the message")
	case now-m.header.Epoch > pastEpochs, m.proposal != nil && m.header.Epoch != now:
		return conflictWith(c, "past_epoch", "the epoch of the message is too long ago")
	}
	return nil
}

// checkLeave refuses a proposal that is not of the caller's device about itself.
func (m *Message) checkLeave(c *db.HostedConversation) error {
	if m.proposal == nil {
		return nil
	}
	group, err := mls.ParseGroupInfo(c.GroupInfo)
	if err != nil {
		return err
	}
	if err := m.proposal.Verify(group); err != nil {
		return badMessage(err, "/message")
	}
	leaf := memberAt(group, m.proposal.Sender.Leaf) // Verify found it
	if string(leaf.Identity) != string(m.Caller) || m.proposal.Proposals[0].Removed != leaf.Index {
		return fault.New(fault.Forbidden, "a proposal asks for the removal of its sender").WithCode("wrong_sender").At("/message")
	}
	return nil
}

func (b *batch) write(ctx context.Context, tx LogTx) error {
	if len(b.entries) == 0 {
		return nil
	}
	c := b.conversation
	if err := tx.AddLogEntries(ctx, c.ID, b.entries...); err != nil {
		return err
	}
	c.LastHash = b.entries[len(b.entries)-1].Hash
	if err := tx.CountMessages(ctx, c.ID, len(b.entries), c.LastHash, b.now); err != nil {
		return err
	}
	for _, e := range b.entries {
		if e.Kind == db.KindProposal {
			if err := tx.AskToLeave(ctx, c.ID, e.Sender); err != nil {
				return err
			}
		}
		if err := tx.AddEvent(ctx, newEvent(eventMessage, c, b.host, e.Sender, vocab.Doc{"seq": e.Seq, "kind": e.Kind}, b.now)); err != nil {
			return err
		}
	}
	f, err := newFanout(ctx, tx, b.Deps, b.at.Host, c, 0, b.now)
	if err != nil {
		return err
	}
	return f.tellEntries(ctx, tx, b.previous, b.entries...)
}
