package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveActor finds the sender, and remembers that it is gone once its Delete of itself is
// taken. A server that says 410 of an actor has said all that the actor's own Delete could: a
// Delete of our own making is taken in its place, since what came bears no signature that anybody
// could verify any more. Where it says 404 the Delete proves nothing, and is dropped; refusing it
// would only make the peer come again for days. When another server passes the activity on, that
// one must be known first.
func (i *Inbox) resolveActor(ctx context.Context, x *receiving, next pipeline.Next) error {
	id := x.Activity.Actor
	deletesItself := deletesItself(x.Activity)
	resolve := i.Actors.Resolve
	if handler.UpdatesItself(x.Activity) { // it is asked for again below, within its budget
		resolve = i.Actors.Current
	}
	if !x.foreign {
		err := i.memory.runAside(ctx, x, func(ctx context.Context) (err error) {
			x.Actor, err = resolve(ctx, id)
			if fault.KindOf(err) == fault.Gone && err != nil && deletesItself {
				x.gone, x.Actor = true, &vocab.Actor{ID: id}
				return nil
			}
			return err
		})
		if err == nil && x.gone {
			err = x.rewriteDelete()
		}
		switch {
		case err == nil:
		case fault.KindOf(err) == fault.NotFound && deletesItself:
			return errDropped
		default:
			err = unresolvedFault(err)
			if fault.KindOf(err) == fault.Unauthenticated {
				i.Actors.NoteProof(ctx, "", false)
			}
			return fmt.Errorf("resolve %s: %w", id, err)
		}
	}
	if err := next(ctx); err != nil || x.gone || !deletesItself {
		return err
	}
	return i.Actors.Bury(ctx, x.Actor.ID)
}

// unresolvedFault returns what it means for a request that its sender was not found: not that the
// inbox is not, which 404 and 410 would tell the peer; nor that its address may not be contacted,
// which would tell what names lead to here.
func unresolvedFault(err error) error {
	switch fault.KindOf(err) {
	case fault.Gone:
		return fault.Wrap(fault.Unauthenticated, "the actor is gone", err).WithCode("actor_gone")
	case fault.NotFound, fault.Protocol, fault.Invalid, fault.NoHost, fault.Forbidden:
		return fault.Wrap(fault.Unauthenticated, "the actor cannot be found", err).WithCode("actor_unknown")
	}
	return err
}
