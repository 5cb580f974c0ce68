package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
)

// maxDepth limits the length of a chain of dispatches in which each dispatch reacts to an event of
// the dispatch before. The limit ends the loop of two clients that answer each other.
const maxDepth = 8

// findCause sets the cause of x, and refuses x if the chain of dispatches before it already has
// the length maxDepth. The event that x reacts to stores that length. If the event is no longer
// stored, x begins a new chain.
func (o *Outbox) findCause(ctx context.Context, x *exchange) error {
	if x.CausedBy == uuid.Nil {
		return nil
	}
	before, err := o.depthOf(ctx, x)
	if err != nil {
		return err
	}
	if before >= maxDepth {
		return fault.New(fault.Unprocessable, fmt.Sprintf("%d dispatches have followed from one another", maxDepth)).WithCode("caused_too_deep")
	}
	x.cause = handler.Cause{Event: x.CausedBy, Depth: before + 1}
	return nil
}

// depthOf returns the depth of the event that x reacts to, or 0 if that event is not stored.
func (o *Outbox) depthOf(ctx context.Context, x *exchange) (int, error) {
	var e *user.Event
	err := o.Store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		e, err = tx.Events.Find(ctx, x.CausedBy)
		return err
	})
	if err != nil || e == nil {
		return 0, err
	}
	var earlier handler.Cause
	if err := json.Unmarshal(e.Payload, &earlier); err != nil {
		return 0, fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	return earlier.Depth, nil
}
