package mls

// ProposalType is the kind of change that a proposal makes (§12.1).
type ProposalType uint16

// The types of proposals. Their numbers are those of §17.4.
const (
	ProposalAdd ProposalType = iota + 1
	ProposalUpdate
	ProposalRemove
	ProposalPreSharedKey
	ProposalReInit
	ProposalExternalInit
	ProposalGroupContextExtensions
)

// Proposal is one proposed change of a group. For types without a field in this struct, a
// delivery service needs only the type, to accept or refuse the proposal.
type Proposal struct {
	Type       ProposalType
	KeyPackage *KeyPackage // for Add
	Leaf       *LeafNode   // for Update
	Removed    uint32      // for Remove: a leaf index
}

// The two forms in which a commit holds a proposal (§12.4).
const (
	byValue = iota + 1
	byReference
)

func (m *PublicMessage) readProposalOrRef(r *reader) {
	if len(m.Proposals)+m.References == maxProposals {
		r.fail(ErrTooMany)
		return
	}
	switch r.readUint8() {
	case byValue:
		m.readProposal(r)
	case byReference:
		m.References++
		r.readVector()
	default:
		r.fail(ErrProposal)
	}
}

func (m *PublicMessage) readProposal(r *reader) {
	p := Proposal{Type: ProposalType(r.readUint16())}
	switch p.Type {
	case ProposalAdd:
		p.KeyPackage = r.readKeyPackage()
	case ProposalUpdate:
		p.Leaf = r.readLeafOf(leafOfUpdate)
	case ProposalRemove:
		p.Removed = r.readUint32()
	case ProposalPreSharedKey:
		r.skipPreSharedKey()
	case ProposalReInit:
		r.skipReInit()
	case ProposalExternalInit:
		r.readVector() // kem_output
	case ProposalGroupContextExtensions:
		r.skipExtensions()
	default:
		r.fail(ErrProposal)
	}
	m.Proposals = append(m.Proposals, p)
}

// The two kinds of pre-shared keys (§8.4).
const (
	externalKey = iota + 1
	resumptionKey
)

func (r *reader) skipPreSharedKey() {
	switch r.readUint8() {
	case externalKey:
		r.readVector() // psk_id
	case resumptionKey:
		r.readUint8()  // usage
		r.readVector() // psk_group_id
		r.readUint64() // psk_epoch
	default:
		r.fail(ErrProposal)
	}
	r.readVector() // psk_nonce
}

// skipReInit reads the parameters of the group that will replace this one (§12.1.5).
func (r *reader) skipReInit() {
	r.readVector()
	r.readVersion()
	r.readUint16()
	r.skipExtensions()
}

// readPath reads an UpdatePath, and returns its leaf (§7.6).
func (r *reader) readPath() *LeafNode {
	leaf, nodes := r.readLeafOf(leafOfCommit), 0
	r.readList(func(r *reader) {
		if nodes++; nodes > maxPath {
			r.fail(ErrTooMany)
		}
		r.readVector() // encryption_key
		r.readList(func(r *reader) { r.readVector(); r.readVector() })
	})
	return leaf
}
