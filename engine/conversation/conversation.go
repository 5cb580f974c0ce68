// Package conversation puts MLS groups in order for the users who host them, keeps the key
// packages of users' devices, and says which types of objects must be encrypted. It reads what MLS
// leaves in the open, and has no key to anything else.
//
// A conversation hands out no epochs: it compares and refuses. Of all commits that were made in
// one epoch one is accepted, and the others are told of it. The transaction decides, so two
// processes cannot fork a group; the mailbox of a conversation gives order, batches and a bound to
// what waits.
package conversation

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Place is where a conversation is put in order.
type Place struct {
	Host vocab.Username // whose conversation it is
	ID   uuid.UUID
}

// Bounds of what a conversation takes.
const (
	maxCommit  = 1 << 20   // bytes of a commit, of a GroupInfo or of a Welcome
	maxText    = 256 << 10 // bytes of an application message
	maxCopies  = 8 << 20   // bytes of all copies of the Welcomes of a commit: each recipient has its own
	maxAdded   = 64        // devices that one commit adds
	pastEpochs = 5         // in which an application message may have been made
	maxMissing = 1 << 20   // bytes of the commits that a refusal tells of
	mostLogged = 100       // messages of a log, or commits of a refusal
)

// rejoinAfter is how long a member waits before it joins by an external commit again: each of them
// costs everybody an epoch.
const rejoinAfter = 5 * time.Minute

// Accepted is where a message stands in the log.
type Accepted struct {
	Seq        int64 `json:"seq"`
	Epoch      int64 `json:"epoch"` // of the conversation, once the message was accepted
	Generation int32 `json:"generation"`
	Replayed   bool  `json:"-"` // it had been accepted before
}

func hashOf(content []byte) []byte {
	h := sha256.Sum256(content)
	return h[:]
}
