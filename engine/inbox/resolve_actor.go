package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveActor finds the sender. If the request was signed by another server, which passes the
// activity on, the sender is found later, once that server is verified. For a Delete by which an
// actor deletes itself there are two special cases. When the actor's server answers 410 for that
// actor, this proves the deletion. Nobody can verify the request's signature any more, so a
// Delete that this server builds replaces the one that came. When the actor's server answers 404,
// the Delete proves nothing. It is dropped and not refused, because the peer would send a refused
// Delete again for days. Once a Delete that an actor signed is accepted, resolveActor records
// that the actor is gone.
func (i *Inbox) resolveActor(ctx context.Context, x *receiving, next pipeline.Next) error {
	id := x.Activity.Actor
	deletesItself := deletesItself(x.Activity)
	resolve := i.Actors.Resolve
	if handler.UpdatesItself(x.Activity) { // the actor is fetched again later, within its budget
		resolve = i.Actors.Current
	}
	if !x.foreign {
		err := i.memory.runAside(ctx, x, func(ctx context.Context) (err error) {
			x.Actor, err = resolve(ctx, id)
			if fault.KindOf(err) == fault.Gone && deletesItself {
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

// unresolvedFault returns the answer to a request whose sender was not found. It is not 404 or
// 410, which would tell the peer that the inbox does not exist. It does not say that the
// sender's address may not be contacted, which would disclose how this server resolves names.
func unresolvedFault(err error) error {
	switch fault.KindOf(err) {
	case fault.Gone:
		return fault.Wrap(fault.Unauthenticated, "the actor is gone", err).WithCode("actor_gone")
	case fault.NotFound, fault.Protocol, fault.Invalid, fault.NoHost, fault.Forbidden:
		return fault.Wrap(fault.Unauthenticated, "the actor cannot be found", err).WithCode("actor_unknown")
	}
	return err
}
