package mls

import "bytes"

// PublicMessage is a message whose content a delivery service can read (§6.2).
type PublicMessage struct {
	Header
	Sender     Sender
	Proposals  []Proposal // the one proposal of a proposal message, or the proposals that a commit contains by value
	References int        // the number of proposals that a commit names by reference
	Path       *LeafNode  // the committer's new leaf; nil if the message is not a commit with a path

	signed    []byte // the FramedContentTBS without the group context
	signature []byte
}

// ParsePublicMessage reads an MLSMessage that is a PublicMessage.
func ParsePublicMessage(message []byte) (*PublicMessage, error) {
	r := reader{rest: message}
	m := r.readPublicMessage()
	if err := r.finish(); err != nil {
		return nil, err
	}
	return m, nil
}

func (r *reader) readPublicMessage() *PublicMessage {
	start := r.rest
	m := &PublicMessage{Header: Header{WireFormat: FormatPublicMessage}}
	r.readFormat(m.WireFormat)
	m.Sender = r.readFrame(&m.Header)
	if !m.Sender.maySend(m.ContentType) {
		r.fail(ErrSender)
	}
	m.readContent(r)
	m.signed = r.readSince(start)
	m.signature = r.readVector()
	if m.ContentType == ContentCommit {
		r.readVector() // confirmation_tag
	}
	if m.Sender.Type == SenderMember {
		r.readVector() // membership_tag
	}
	return m
}

func (m *PublicMessage) readContent(r *reader) {
	switch m.ContentType {
	case ContentApplication:
		r.readVector()
	case ContentProposal:
		m.readProposal(r)
	case ContentCommit:
		r.readList(m.readProposalOrRef)
		if r.readPresence() {
			m.Path = r.readPath()
		}
	}
}

// Verify checks that the message is of the group and epoch of g, and that its sender signed it
// (§6.1). The key of a member is at the member's leaf in g. The key of a device that joins by an
// external commit is in the path of that commit. Messages of other senders are refused.
func (m *PublicMessage) Verify(g *GroupInfo) error {
	if m.Epoch != g.Epoch || !bytes.Equal(m.GroupID, g.GroupID) {
		return ErrGroup
	}
	leaf := g.leaf(m.Sender.Leaf)
	switch m.Sender.Type {
	case SenderMember:
	case SenderNewMemberCommit:
		leaf = m.Path
	default:
		leaf = nil
	}
	if leaf == nil {
		return ErrMember
	}
	return g.Suite.verify(leaf.SignatureKey, "FramedContentTBS", m.signature, m.signed, g.context)
}
