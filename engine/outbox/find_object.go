package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FindObject returns the object that id names, and the author of the object. It finds them as an
// action of the user does, but stores nothing. If there is no such object, the fault has the code
// that a Like would get.
func (o *Outbox) FindObject(ctx context.Context, u vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error) {
	me, err := o.Local.Actor(u)
	if err != nil {
		return nil, nil, refuseWithoutKeys(err)
	}
	obj, author, err := o.finder.findObject(ctx, &exchange{Dispatch: Dispatch{User: u}, actor: me}, "the parameter", string(id))
	if e := fault.Of(err); e != nil {
		return nil, nil, e.At("") // without the pointer, because there is no document that it could point into
	}
	return obj, author, err
}
