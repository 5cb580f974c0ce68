package outbox

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
)

// told holds the members of an event's payload that concern causes.
type told struct {
	EventID  uuid.UUID
	CausedBy uuid.UUID
	Depth    int
}

// answered dispatches a note in answer to the event cause. It returns the event of the note.
func (d *desk) answered(cause uuid.UUID) (told, error) {
	d.t.Helper()
	_, err := d.Dispatch(d.t.Context(), Dispatch{User: d.alice, Token: d.token, CausedBy: cause,
		Action: pipeline.Action{Name: "CreateNote", Params: json.RawMessage(`{"content":"hello"}`)}})
	if err != nil {
		return told{}, err
	}
	return d.lastEvent(), nil
}

func (d *desk) lastEvent() (last told) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Events.List(ctx, 0, 1000)
		if err != nil {
			return err
		}
		return json.Unmarshal(all[len(all)-1].Payload, &last)
	})
	return last
}

// An event names the event that it answers, and how many dispatches came before it in the chain.
// At most eight dispatches may follow the first. A refused dispatch causes no event.
func TestDispatchesThatFollowFromOneAnotherAreCounted(t *testing.T) {
	t.Parallel()
	d := town(t)
	first, err := d.answered(uuid.Nil)
	if err != nil || first.CausedBy != uuid.Nil || first.Depth != 0 {
		t.Fatalf("an event without a cause: %+v, %v", first, err)
	}
	last := first
	for depth := 1; depth <= 8; depth++ {
		e, err := d.answered(last.EventID)
		if err != nil || e.CausedBy != last.EventID || e.Depth != depth {
			t.Fatalf("the event that answers %v: %+v, %v; want depth %d", last.EventID, e, err, depth)
		}
		last = e
	}
	if _, err := d.answered(last.EventID); fault.Of(err) == nil || fault.Of(err).Code != "caused_too_deep" || fault.KindOf(err) != fault.Unprocessable {
		t.Errorf("the ninth in a row: %v, want caused_too_deep", err)
	}
	if e := d.lastEvent(); e != last {
		t.Errorf("after the refusal the last event is %+v, want %+v", e, last)
	}
	if e, err := d.answered(first.EventID); err != nil || e.Depth != 1 {
		t.Errorf("another answer to the first: %+v, %v", e, err)
	}
	forgotten := uuid.Must(uuid.NewV7())
	if e, err := d.answered(forgotten); err != nil || e.CausedBy != forgotten || e.Depth != 1 {
		t.Errorf("an answer to an event that is not kept: %+v, %v", e, err)
	}
}
