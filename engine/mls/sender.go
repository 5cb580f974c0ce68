package mls

// SenderType is the role of the sender of a PublicMessage (§6).
type SenderType uint8

// The roles of senders. In groups of this engine only members, and a device that joins by an
// external commit, may make changes.
const (
	SenderMember SenderType = iota + 1
	SenderExternal
	SenderNewMemberProposal
	SenderNewMemberCommit
)

// Sender is the sender that a PublicMessage names.
type Sender struct {
	Type SenderType
	Leaf uint32 // the leaf index of a member
}

func (r *reader) readSender() Sender {
	s := Sender{Type: SenderType(r.readUint8())}
	switch s.Type {
	case SenderMember:
		s.Leaf = r.readUint32()
	case SenderExternal:
		r.readUint32() // the index in the group's list of external senders
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
