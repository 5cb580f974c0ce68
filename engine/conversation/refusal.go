package conversation

import (
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

// Refusals of requests.
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

// isRefusal reports whether err refuses a request. Any other error is a failure, after which the
// transaction is rolled back.
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

// Conflict refuses a message that does not fit the present state of the conversation. It holds the
// state for which the sender has to make the message again.
type Conflict struct {
	GroupID    string
	Generation int32
	Epoch      int64
	Status     string
	Reset      string          // the next MLS group; empty unless a reset is pending
	Missing    []user.LogEntry // commits since the message's epoch, oldest first; may be cut off
	HasWinner  bool            // the first of Missing ended the message's epoch; otherwise that commit is not stored any more

	err error
}

func (c *Conflict) Error() string { return c.err.Error() }

// Unwrap returns the fault, of kind Conflict.
func (c *Conflict) Unwrap() error { return c.err }

// conflictWith returns a Conflict that holds the state of a conversation.
func conflictWith(c *user.HostedConversation, code, public string) *Conflict {
	return &Conflict{GroupID: c.GroupID, Generation: c.Generation, Epoch: c.Epoch, Status: c.Status, Reset: c.ResetGroupID,
		err: fault.New(fault.Conflict, public).WithCode(code)}
}

// checkActive refuses changes of a conversation that is closed or waits for a reset.
func checkActive(c *user.HostedConversation) error {
	switch c.Status {
	case user.StatusResetPending:
		return conflictWith(c, "reset_pending", "the conversation waits for a new MLS group")
	case user.StatusClosed:
		return conflictWith(c, "conversation_closed", "the conversation is closed")
	}
	return nil
}
