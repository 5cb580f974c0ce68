// Package mls reads the parts of messages of RFC 9420 that a delivery service may see: the
// framing, and the proposals, commits, Welcomes, key packages and GroupInfos that are not
// encrypted. It has no secrets and no state, and decrypts nothing. Section numbers are those of
// RFC 9420.
//
// Parsed values share the bytes of the message. The lengths that a message claims never decide
// how much memory is allocated.
package mls

// MaxMembers limits the members of a group. A Welcome with more secrets, or a ratchet tree with
// more leaves, is refused.
const MaxMembers = 256

// maxProposals limits the proposals of a commit. It is enough to remove all members and to add as
// many.
const maxProposals = 2 * MaxMembers

// maxPath is the number of nodes on a path from a leaf to the root in the largest group. It
// counts the root, but not the leaf.
const maxPath = 8

// mls10 is the only protocol version (§6).
const mls10 = 1

// WireFormat is the kind of an MLSMessage (§6).
type WireFormat uint16

// The wire formats. Their numbers are those of §17.2.
const (
	FormatPublicMessage WireFormat = iota + 1
	FormatPrivateMessage
	FormatWelcome
	FormatGroupInfo
	FormatKeyPackage
)

// ContentType is the kind of the content of a PublicMessage or PrivateMessage (§6).
type ContentType uint8

// The content types.
const (
	ContentApplication ContentType = iota + 1
	ContentProposal
	ContentCommit
)
