package mls

// Member is one device in a group, and its index in the ratchet tree.
type Member struct {
	Index uint32 // of its leaf, counting only leaves
	LeafNode
}

// The two kinds of nodes (§7.8).
const (
	nodeLeaf = iota + 1
	nodeParent
)

// readTree reads the data of the extension ratchet_tree (§12.4.3.3). The data has the nodes from
// left to right, with leaves at even places and parents at odd places. It ends with the last node
// that is not blank.
func (r *reader) readTree() []Member {
	members := []Member{}
	place, last := uint32(0), false
	r.readList(func(r *reader) {
		if place > 2*(MaxMembers-1) {
			r.fail(ErrTooMany)
			return
		}
		if last = r.readPresence(); last {
			members = r.readNode(place, members)
		}
		place++
	})
	if !last {
		r.fail(ErrTree)
	}
	return members
}

// readNode reads the node at the given place, and appends it to the members if it is a leaf.
func (r *reader) readNode(place uint32, members []Member) []Member {
	kind := r.readUint8()
	switch {
	case kind == nodeLeaf && place%2 == 0:
		return append(members, Member{Index: place / 2, LeafNode: r.readLeafNode()})
	case kind == nodeParent && place%2 == 1:
		r.readVector() // encryption_key
		r.readVector() // parent_hash
		r.skipNumbers(4)
	default:
		r.fail(ErrTree)
	}
	return members
}
