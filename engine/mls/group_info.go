package mls

// GroupInfo is the public state of a group at one epoch (§12.4.3).
type GroupInfo struct {
	Suite          CipherSuite
	GroupID        []byte
	Epoch          uint64
	Members        []Member // from the extension ratchet_tree; nil without it
	HasExternalPub bool     // devices may join by an external commit
	Signer         uint32   // the leaf index of the member that made the GroupInfo

	context   []byte // the GroupContext
	signed    []byte // the GroupInfoTBS
	signature []byte
}

// ParseGroupInfo reads an MLSMessage that is a GroupInfo.
func ParseGroupInfo(message []byte) (*GroupInfo, error) {
	r := reader{rest: message}
	g := r.readGroupInfo()
	if err := r.finish(); err != nil {
		return nil, err
	}
	return g, nil
}

func (r *reader) readGroupInfo() *GroupInfo {
	r.readFormat(FormatGroupInfo)
	start, g := r.rest, &GroupInfo{}
	g.Suite, g.GroupID, g.Epoch = r.readGroup()
	r.readVector() // tree_hash
	r.readVector() // confirmed_transcript_hash
	r.skipExtensions()
	g.context = r.readSince(start)
	r.readList(g.readExtension)
	r.readVector() // confirmation_tag
	g.Signer = r.readUint32()
	g.signed = r.readSince(start)
	g.signature = r.readVector()
	return g
}

// The extensions of a GroupInfo that a delivery service reads (§17.3).
const (
	extensionRatchetTree = 2
	extensionExternalPub = 4
)

func (g *GroupInfo) readExtension(r *reader) {
	kind, data := r.readUint16(), r.readVector()
	switch {
	case kind == extensionRatchetTree && g.Members == nil:
		g.readMembers(r, data)
	case kind == extensionExternalPub && !g.HasExternalPub:
		g.HasExternalPub = true
	case kind == extensionRatchetTree, kind == extensionExternalPub:
		r.fail(ErrExtension)
	}
}

func (g *GroupInfo) readMembers(r *reader, data []byte) {
	tree := reader{rest: data}
	g.Members = tree.readTree()
	if err := tree.finish(); err != nil {
		r.fail(err)
	}
}

// Verify returns nil if the member that made the GroupInfo has signed it. The key of the member
// is at its leaf in the ratchet tree (§12.4.3.1).
func (g *GroupInfo) Verify() error {
	leaf := g.leaf(g.Signer)
	if leaf == nil {
		return ErrMember
	}
	return g.Suite.verify(leaf.SignatureKey, "GroupInfoTBS", g.signature, g.signed)
}

// leaf returns the leaf at the given index, or nil if no member is there.
func (g *GroupInfo) leaf(index uint32) *LeafNode {
	for i := range g.Members {
		if g.Members[i].Index == index {
			return &g.Members[i].LeafNode
		}
	}
	return nil
}
