// Package conversation is the delivery service of MLS groups (RFC 9420) for the users who host
// them: it puts their messages in order. It also stores the key packages of users' devices, and
// says which types of objects must be encrypted. It reads only the parts of MLS messages that are
// not encrypted, and has no keys. Servers of other software may know only the SWICG's draft for
// MLS messages in ActivityPub. That draft defines no host of a conversation. Comments call it the
// SWICG draft.
//
// A conversation never assigns an epoch to a commit. It compares the epoch in which the commit
// was made with its own present epoch. If several commits were made in one epoch, it accepts one
// of them and refuses the others, and the refusal contains the accepted commit. The database
// transaction decides which commit is accepted, so two processes cannot fork a group. The mailbox
// of a conversation only orders and batches requests, and limits how many wait.
package conversation

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Place names a conversation and the user who hosts it.
type Place struct {
	Host vocab.Username // the user whose database has its log
	ID   uuid.UUID
}

// Bounds on the input of a conversation, and on its answers.
const (
	maxCommit  = 1 << 20   // bytes of a commit, of a GroupInfo or of a Welcome
	maxText    = 256 << 10 // bytes of an application message or a proposal for a host
	maxCopies  = 8 << 20   // bytes of all copies of the Welcomes of a commit; each recipient gets a copy
	maxAdded   = 64        // devices that one commit adds
	pastEpochs = 5         // an application message may be this many epochs old
	maxMissing = 1 << 20   // bytes of the commits that a refusal lists
	mostLogged = 100       // messages in a page of a log, or commits in a refusal
	maxFormer  = 200       // former MLS groups of a conversation that another actor hosts
)

// rejoinAfter is the least time between two external commits of a member. Each external commit
// costs all members an epoch.
const rejoinAfter = 5 * time.Minute

// Accepted is the place of an accepted message in the log.
type Accepted struct {
	Seq        int64 `json:"seq"`
	Epoch      int64 `json:"epoch"` // of the conversation after the message was accepted
	Generation int32 `json:"generation"`
	Replayed   bool  `json:"-"` // the message was accepted by an earlier request
}

func hashOf(content []byte) []byte {
	h := sha256.Sum256(content)
	return h[:]
}
