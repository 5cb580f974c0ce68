package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
)

// maxDepth is how many dispatches may follow from one another: two programs that answer each other
// come to an end.
const maxDepth = 8

// findCause counts the dispatches that led to x, and refuses one too many. The event that x answers
// has the count of those before; one that is not kept any more begins a new one.
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

// depthOf returns the depth of the event that x answers.
func (o *Outbox) depthOf(ctx context.Context, x *exchange) (int, error) {
	var e *db.Event
	err := o.Store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		e, err = tx.EventByID(ctx, x.CausedBy)
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
