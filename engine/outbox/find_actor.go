package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FindActor returns the actor with this id or handle, as an action of the user's would find it: for
// an LLM engine, one that the user's database holds something of. The fault says why there is none,
// by the codes of a Follow.
func (o *Outbox) FindActor(ctx context.Context, u vocab.Username, isAssistant bool, name string) (*vocab.Actor, error) {
	a, err := o.finder.findActor(ctx, &exchange{Dispatch: Dispatch{User: u, Assistant: isAssistant}}, "the parameter", name)
	if e := fault.Of(err); e != nil {
		return nil, e.At("") // there is no document that it stands in
	}
	return a, err
}
