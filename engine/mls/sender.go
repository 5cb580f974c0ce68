package mls

// SenderType says in which role a PublicMessage was sent (§6).
type SenderType uint8

// The roles of senders. Only members, and a device that joins by an external commit, change a
// group of this engine.
const (
	SenderMember SenderType = iota + 1
	SenderExternal
	SenderNewMemberProposal
	SenderNewMemberCommit
)

// Sender is who a PublicMessage says it is from.
type Sender struct {
	Type SenderType
	Leaf uint32 // of a member
}

func (r *reader) readSender() Sender {
	s := Sender{Type: SenderType(r.readUint8())}
	switch s.Type {
	case SenderMember:
		s.Leaf = r.readUint32()
	case SenderExternal:
		r.readUint32() // the place among the external senders of the group
	case SenderNewMemberProposal, SenderNewMemberCommit:
	default:
		r.fail(ErrSender)
	}
	return s
}

// maySend reports whether content of type t may come from the sender (§12.1.8, §12.4.3.2).
func (s Sender) maySend(t ContentType) bool {
	switch s.Type {
	case SenderMember:
		return true
	case SenderNewMemberCommit:
		return t == ContentCommit
	default:
		return t == ContentProposal
	}
}
