package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveActor finds the sender, and remembers that it is gone once its Delete of itself is taken. A server that says 410
// of an actor has said all that the actor's own Delete could: a Delete of our own making is taken in its place, since what
// came bears no signature that anybody could verify any more. Where it says 404 the Delete proves nothing, and is dropped;
// refusing it would only make the peer come again for days. When another server passes the activity on, that one must be known first.
func (i *Inbox) resolveActor(ctx context.Context, x *receiving, next pipeline.Next) error {
	deletesItself := deletesItself(x.Activity)
	if !x.foreign {
		var err error
		resolve := i.Actors.Resolve
		if handler.UpdatesItself(x.Activity) { // it is asked for again below, within its budget
			resolve = i.Actors.Current
		}
		x.Actor, err = resolve(ctx, x.Activity.Actor)
		switch kind := fault.KindOf(err); {
		case err == nil:
		case kind == fault.Gone && deletesItself:
			x.gone, x.Actor = true, &vocab.Actor{ID: x.Activity.Actor}
			if err := x.rewriteDelete(); err != nil {
				return err
			}
		case kind == fault.NotFound && deletesItself:
			return errDropped
		default:
			return fmt.Errorf("resolve %s: %w", x.Activity.Actor, unresolved(err))
		}
	}
	if err := next(ctx); err != nil || x.gone || !deletesItself {
		return err
	}
	return i.Actors.Bury(ctx, x.Actor.ID)
}

// unresolved returns what it means for a request that its sender was not found: not that the inbox is not, which 404 and
// 410 would tell the peer; nor that its address may not be contacted, which would tell what names lead to here.
func unresolved(err error) error {
	switch fault.KindOf(err) {
	case fault.Gone:
		return fault.Wrap(fault.Unauthenticated, "the actor is gone", err).WithCode("actor_gone")
	case fault.NotFound, fault.Protocol, fault.Invalid, fault.NoHost, fault.Forbidden:
		return fault.Wrap(fault.Unauthenticated, "the actor cannot be found", err).WithCode("actor_unknown")
	}
	return err
}
