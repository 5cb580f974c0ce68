package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Message is an encrypted message to the members of a conversation, or a member's proposal to be
// removed.
type Message struct {
	Caller  vocab.ID
	Content []byte

	header   mls.Header
	proposal *mls.PublicMessage // nil if the message is a PrivateMessage
	hash     []byte
	accepted Accepted
}

func (m *Message) name() string { return "message" }

func (m *Message) askedBy() vocab.ID { return m.Caller }

// Send queues a message, waits until it is handled, and returns its place in the log. A message
// that is in the log already keeps its place.
func (r *Registry) Send(ctx context.Context, at Place, m Message) (Accepted, error) {
	if err := m.parse(); err != nil {
		return Accepted{}, err
	}
	err := r.submit(ctx, at, &m)
	return r.metrics.countReplay(m.accepted, err)
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
	case m.header.WireFormat == mls.FormatPrivateMessage && m.header.ContentType != mls.ContentCommit:
		return nil
	case m.header.WireFormat != mls.FormatPublicMessage || m.header.ContentType != mls.ContentProposal:
		return errNoMessage
	}
	if m.proposal, err = mls.ParsePublicMessage(m.Content); err != nil {
		return badMessage(err, "/message")
	}
	if m.proposal.Proposals[0].Type != mls.ProposalRemove || m.proposal.Sender.Type != mls.SenderMember {
		return unprocessable("bad_proposal", "a proposal asks for the removal of its sender").At("/message")
	}
	return nil
}

var errNoMessage = unprocessable("not_a_message", "a message is a PrivateMessage with application data, or a member's proposal to be removed").At("/message")

// IsCiphertext reports whether content is an MLS PrivateMessage with application data.
func IsCiphertext(content []byte) bool {
	h, err := mls.ReadHeader(content)
	return err == nil && h.WireFormat == mls.FormatPrivateMessage && h.ContentType == mls.ContentApplication
}

func (m *Message) kind() string {
	if m.header.ContentType == mls.ContentProposal {
		return user.KindProposal
	}
	return user.KindApplication
}

// acceptMessages accepts or refuses messages in their order, and writes the accepted ones
// together.
func (d Deps) acceptMessages(ctx context.Context, tx *user.Tx, at Place, c *user.HostedConversation, tasks []*task) error {
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
	members, err := tx.Conversations.FindMembers(ctx, c.ID, callers)
	if err != nil {
		return err
	}
	blocked, err := tx.Blocks.FindAmong(ctx, callers)
	if err != nil {
		return err
	}
	logged, err := tx.Hosted.FindMessages(ctx, c.ID, hashes)
	if err != nil {
		return err
	}
	b := &batch{Deps: d, at: at, host: host, conversation: c, previous: c.LastHash, members: members, blocked: blocked, logged: map[string]user.LoggedMessage{}, now: d.Now()}
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

// batch holds messages that are accepted in one transaction.
type batch struct {
	Deps
	at           Place
	host         vocab.ID
	previous     []byte // hash of the last message before the batch
	conversation *user.HostedConversation
	members      map[vocab.ID]user.ConversationMember
	blocked      map[vocab.ID]bool             // the callers that the host blocks
	logged       map[string]user.LoggedMessage // messages that the log has already, by content hash
	entries      []user.LogEntry
	now          time.Time
}

// accept gives a message its number, or refuses it.
func (b *batch) accept(m *Message) error {
	c := b.conversation
	var member *user.ConversationMember
	if is, known := b.members[m.Caller]; known {
		member = &is
	}
	if err := checkMember(member); err != nil {
		return err
	}
	if b.blocked[m.Caller] {
		return errNotMember
	}
	if c.Mode == user.ModeFederated {
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
	b.entries = append(b.entries, user.LogEntry{Seq: c.LastSeq, Generation: c.Generation, Epoch: int64(m.header.Epoch), Kind: m.kind(), Sender: m.Caller, Content: m.Content, Hash: m.hash, At: b.now})
	b.logged[string(m.hash)] = user.LoggedMessage{Seq: c.LastSeq, Sender: m.Caller}
	m.accepted = Accepted{Seq: c.LastSeq, Epoch: c.Epoch, Generation: c.Generation}
	return nil
}

// checkMessageEpoch refuses a message of another group, of a future epoch, or of an epoch so long
// ago that members have dropped its keys. A proposal must be of the present epoch.
func checkMessageEpoch(c *user.HostedConversation, m *Message) error {
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
	case now-m.header.Epoch > pastEpochs, m.kind() == user.KindProposal && m.header.Epoch != now:
		return conflictWith(c, "past_epoch", "the epoch of the message is too long ago")
	}
	return nil
}

// checkLeave refuses a proposal unless the caller's device made it and proposes to remove itself.
// In a mixed conversation the host cannot read proposals, and treats each one as a proposal to
// leave. Such a proposal permits others to remove its sender, and nothing else.
func (m *Message) checkLeave(c *user.HostedConversation) error {
	switch {
	case m.kind() != user.KindProposal, c.Mixed && m.proposal == nil:
		return nil
	case c.Mixed:
		return errNotPrivate.At("/message")
	case m.proposal == nil:
		return errNoMessage
	}
	group, err := mls.ParseGroupInfo(c.GroupInfo)
	if err != nil {
		return err
	}
	if err := m.proposal.Verify(group); err != nil {
		return badMessage(err, "/message")
	}
	leaf := memberAt(group, m.proposal.Sender.Leaf) // not nil, because Verify found the leaf
	if string(leaf.Identity) != string(m.Caller) || m.proposal.Proposals[0].Removed != leaf.Index {
		return fault.New(fault.Forbidden, "a proposal asks for the removal of its sender").WithCode("wrong_sender").At("/message")
	}
	return nil
}

func (b *batch) write(ctx context.Context, tx *user.Tx) error {
	if len(b.entries) == 0 {
		return nil
	}
	c := b.conversation
	tx.Hosted.AddEntries(c.ID, b.entries...)
	c.LastHash = b.entries[len(b.entries)-1].Hash
	tx.Hosted.CountMessages(c.ID, len(b.entries), c.LastHash, b.now)
	for _, e := range b.entries {
		if e.Kind == user.KindProposal {
			if err := tx.Conversations.AskToLeave(ctx, c.ID, e.Sender); err != nil {
				return err
			}
		}
		if err := tx.Events.Add(ctx, newEvent(eventMessage, c, b.host, e.Sender, vocab.Doc{"seq": e.Seq, "kind": e.Kind}, b.now)); err != nil {
			return err
		}
		if e.Kind != user.KindApplication || e.Sender == b.host || b.isMuted(b.at.Host, e.Sender) {
			continue
		}
		if err := tx.Events.Add(ctx, newEvent(eventChat, c, b.host, e.Sender, vocab.Doc{"seq": e.Seq}, b.now)); err != nil {
			return err
		}
	}
	f, err := newFanout(ctx, tx, b.Deps, b.at.Host, c, 0, b.now)
	if err != nil {
		return err
	}
	return f.tellEntries(ctx, tx, b.previous, b.entries...)
}
