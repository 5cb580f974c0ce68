package conversation

import (
	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
)

// Reasons why something is refused.
var (
	errNoConversation = fault.New(fault.NotFound, "there is no such conversation").WithCode("no_conversation")
	errNotMember      = fault.New(fault.Forbidden, "you are no member of the conversation any more").WithCode("not_member")
	errNotAdmin       = fault.New(fault.Forbidden, "only who made the conversation may do that").WithCode("not_admin")
	errWrongGroup     = fault.New(fault.Invalid, "the MLS message belongs to another group").WithCode("wrong_group")
	errBusy           = fault.New(fault.RateLimited, "the conversation has too much to do; try again").WithCode("mls_busy")
	errQuarantined    = fault.New(fault.Unavailable, "the conversation failed again and again, and rests").WithCode("mls_quarantined")
	errClosing        = fault.New(fault.Unavailable, "the server is stopping").WithCode("mls_closing")
	errKeyReuse       = fault.New(fault.Unprocessable, "the Idempotency-Key was used for another request").WithCode("idempotency_key_reuse")
)

func unprocessable(code, public string) *fault.Error {
	return fault.New(fault.Unprocessable, public).WithCode(code)
}

// isRefusal reports whether err says that a request cannot be granted. Anything else is a failure,
// after which nothing of a transaction holds.
func isRefusal(err error) bool {
	of := fault.Of(err)
	if of == nil {
		return false
	}
	switch of.Kind {
	case fault.Invalid, fault.Unprocessable, fault.Forbidden, fault.NotFound, fault.Conflict, fault.TooLarge, fault.RateLimited:
		return true
	}
	return false
}

// Conflict refuses a message that was made in another state than the conversation is in, with all
// that its maker needs to make it again.
type Conflict struct {
	GroupID    string
	Generation int32
	Epoch      int64
	Status     string
	Reset      string        // the group that comes next; empty unless a reset is pending
	Missing    []db.LogEntry // the commits since the epoch of the message, the one that won first

	err error
}

func (c *Conflict) Error() string { return c.err.Error() }

// Unwrap returns the fault, of kind Conflict.
func (c *Conflict) Unwrap() error { return c.err }

// conflictWith returns a refusal by the state of a conversation.
func conflictWith(c *db.HostedConversation, code, public string) *Conflict {
	return &Conflict{GroupID: c.GroupID, Generation: c.Generation, Epoch: c.Epoch, Status: c.Status, Reset: c.ResetGroupID,
		err: fault.New(fault.Conflict, public).WithCode(code)}
}

// checkActive refuses what a conversation that rests cannot take.
func checkActive(c *db.HostedConversation) error {
	switch c.Status {
	case db.StatusResetPending:
		return conflictWith(c, "reset_pending", "the conversation waits for a new MLS group")
	case db.StatusClosed:
		return conflictWith(c, "conversation_closed", "the conversation is closed")
	}
	return nil
}
