package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FindObject returns the object with this id, and its author, as an action of the user's would find
// them. It keeps nothing. The fault says why there is none, by the codes of a Like.
func (o *Outbox) FindObject(ctx context.Context, u vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error) {
	me, err := o.Local.Actor(u)
	if err != nil {
		return nil, nil, refuseWithoutKeys(err)
	}
	obj, author, err := o.finder.findObject(ctx, &exchange{Dispatch: Dispatch{User: u}, actor: me}, "the parameter", string(id))
	if e := fault.Of(err); e != nil {
		return nil, nil, e.At("") // there is no document that it stands in
	}
	return obj, author, err
}
