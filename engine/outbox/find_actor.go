package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FindActor returns the actor whose id or handle is in the parameter name. It finds the actor as
// an action of the user does. If isAssistant is true, it finds only actors that the user's
// database has data of. If it finds no actor, the fault has the code that a Follow would get.
func (o *Outbox) FindActor(ctx context.Context, u vocab.Username, isAssistant bool, name string) (*vocab.Actor, error) {
	a, err := o.finder.findActor(ctx, &exchange{Dispatch: Dispatch{User: u, Assistant: isAssistant}}, "the parameter", name)
	if e := fault.Of(err); e != nil {
		return nil, e.At("") // without the pointer, because there is no document that it could point into
	}
	return a, err
}
