package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// block blocks an actor. The Block ends the follows and friendships between the actor and the
// user, and the user gets nothing from the actor any more. The Block is not sent to the actor
// (ActivityPub §6.9), unless the operator has configured that Blocks are sent.
type block struct {
	ActorURI string `json:"actorUri" schema:"actor"`

	actor vocab.ID
}

func (p *block) checkParams() error { return checkPresent("actorUri", p.ActorURI) }

func (p *block) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	id, err := f.actorID(ctx, x, p.ActorURI)
	if err != nil {
		return err
	}
	if x.counterpart, err = f.reachActor(ctx, x, id); err != nil { // only the id is needed, so an actor whose server does not answer can be blocked too
		return err
	}
	if x.counterpart.ID.Same(x.actor.ID) {
		return badParam("actorUri", "nobody blocks themselves")
	}
	p.actor = x.counterpart.ID
	if f.deliverBlocks {
		x.to = []vocab.ID{p.actor}
		x.addNamed(x.counterpart)
	}
	return f.instance.Acquaintances.Add(ctx, p.actor, []vocab.Username{x.User}, false)
}

func (p *block) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Block, string(p.actor)
}

func (p *block) lockName() string { return blocks }

func (p *block) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	b, err := tx.Blocks.Find(ctx, user.Outbound, p.actor)
	if err != nil || b == nil {
		return "", err
	}
	return b.Activity, nil
}

// unblock undoes a block. The actor gets the Undo if it got the Block. The follows that the block
// ended stay ended.
type unblock struct {
	ActorURI string `json:"actorUri" schema:"actor"`

	block  *user.Block
	undone vocab.Doc
}

func (p *unblock) checkParams() error { return checkPresent("actorUri", p.ActorURI) }

func (p *unblock) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	id, err := f.actorID(ctx, x, p.ActorURI)
	if err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		if p.block, err = tx.Blocks.Find(ctx, user.Outbound, id); err != nil {
			return err
		}
		if p.block == nil {
			return refuseNotBlocked()
		}
		if p.undone, err = readStoredActivity(ctx, tx, vocab.Block, p.block.Activity, x.actor.ID, p.block.Actor); err != nil {
			return err
		}
		x.earlier, err = tx.Deliveries.ListSentTo(ctx, p.block.Activity)
		return err
	})
	if err != nil {
		return err
	}
	if x.counterpart, err = f.reachActor(ctx, x, p.block.Actor); err != nil {
		return err
	}
	if x.to, err = p.undone.IDs("to"); err == nil && len(x.to) > 0 {
		x.addNamed(x.counterpart)
	}
	return err
}

func refuseNotBlocked() error {
	return fault.New(fault.NotFound, "the actor is not blocked").WithCode("not_blocked").At("/params/actorUri")
}

func (p *unblock) constructObject(*actor.Local, *exchange) (string, any) { return vocab.Undo, p.undone }

func (p *unblock) lockName() string { return blocks }

func (p *unblock) findEarlier(ctx context.Context, tx *user.Tx, _ *exchange) (vocab.ID, error) {
	b, err := tx.Blocks.Find(ctx, user.Outbound, p.block.Actor)
	if err == nil && (b == nil || b.Activity != p.block.Activity) {
		err = refuseNotBlocked()
	}
	return "", err
}

// blocks is the name of the lock under which Blocks are made and undone, one at a time.
const blocks = "blocks"

// checkUnblocked refuses an action with an actor that the user blocks. The parameter "at" is the
// place in the action that names the actor.
func checkUnblocked(ctx context.Context, tx *user.Tx, actor vocab.ID, at string) error {
	mine, err := tx.Blocks.Find(ctx, user.Outbound, actor)
	if err == nil && mine != nil {
		err = fault.New(fault.Conflict, "the user blocks the actor: unblock it first").WithCode("blocked").At(at)
	}
	return err
}

// checkNotBlocked refuses an action with an actor if the actor or the user blocks the other one.
func checkNotBlocked(ctx context.Context, tx *user.Tx, actor vocab.ID) error {
	if err := checkUnblocked(ctx, tx, actor, "/params/actorUri"); err != nil {
		return err
	}
	theirs, err := tx.Blocks.Find(ctx, user.Inbound, actor)
	if err == nil && theirs != nil {
		err = fault.New(fault.Forbidden, "the actor blocks the user").WithCode("blocked_by").At("/params/actorUri")
	}
	return err
}
