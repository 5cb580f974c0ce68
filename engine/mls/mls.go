// Package mls reads the parts of RFC 9420 that a delivery service may see: the framing of
// messages, and the commits, welcomes, key packages and states of groups that travel in the
// open. It holds no secret, decrypts nothing, and keeps no state.
//
// Values share the bytes they were read from; no length in a message makes anything be allocated.
package mls

// MaxMembers is how many members a group may have. No list of members, welcomes or leaves is read
// further.
const MaxMembers = 256

// maxProposals is how many proposals a commit may have: all members leave, and as many join.
const maxProposals = 2 * MaxMembers

// maxPath is how many nodes stand between a leaf and the root of a whole group, the root included.
const maxPath = 8

// mls10 is the only protocol version there is (§6).
const mls10 = 1

// WireFormat says how an MLSMessage is framed (§6).
type WireFormat uint16

// The wire formats. Their numbers are those of §17.2.
const (
	FormatPublicMessage WireFormat = iota + 1
	FormatPrivateMessage
	FormatWelcome
	FormatGroupInfo
	FormatKeyPackage
)

// ContentType says what the content of a PublicMessage or PrivateMessage is (§6).
type ContentType uint8

// The content types.
const (
	ContentApplication ContentType = iota + 1
	ContentProposal
	ContentCommit
)
