package outbox

import (
	"context"
	"errors"
	"strings"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// actorFinder finds the actors that an action names.
type actorFinder interface {
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Handle(ctx context.Context, handle string) (*vocab.Actor, error)
}

// actorsFor returns who finds the actors that the action names.
func (f *finder) actorsFor(x *exchange) actorFinder {
	if x.Assistant {
		return held{f, x.User}
	}
	return f.actors
}

// held finds for an LLM engine only those actors the user's database holds something of, and asks
// nobody: an address that is asked for could tell its server of the letters that the LLM engine has
// read.
type held struct {
	*finder
	user vocab.Username
}

// errUnheld is that the user's database holds nothing of what is named, whether there is such a
// thing or not.
var errUnheld = errors.New("the user's database holds nothing of it")

func isUnheld(err error) bool { return errors.Is(err, errUnheld) }

// refuseUnheld refuses the parameter of that name.
func refuseUnheld(name string) error {
	return fault.Wrap(fault.Forbidden, "the token may name only actors and objects that the user has here already", errUnheld).
		WithCode("not_known_here").At("/params/" + name)
}

// Resolve returns the actor with this id, as it was last seen.
func (h held) Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if id.Same(h.local.ID(h.user)) {
		return h.local.Actor(h.user)
	}
	if err := h.gate.CheckActor(id); err != nil {
		return nil, err
	}
	copied, err := h.readCopy(ctx, id)
	if err != nil {
		return nil, err
	}
	a, err := h.actors.Known(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case a != nil:
		return a, nil
	case copied != nil:
		return copied, nil
	}
	return nil, errUnheld
}

// readCopy returns the user's own copy of an actor, nil when there is none but something else of
// the actor's is there.
func (h held) readCopy(ctx context.Context, id vocab.ID) (a *vocab.Actor, err error) {
	err = h.store.Read(ctx, h.user, func(ctx context.Context, tx *db.Tx) error {
		if a, err = tx.Actor(ctx, id); err != nil || a != nil {
			return err
		}
		holds, err := tx.HoldsOf(ctx, id, "")
		if err == nil && !holds {
			err = errUnheld
		}
		return err
	})
	return a, err
}

// Handle returns the actor that was last known by this handle.
func (h held) Handle(ctx context.Context, handle string) (*vocab.Actor, error) {
	a, err := h.actors.KnownHandle(ctx, handle)
	switch {
	case fault.KindOf(err) == fault.Internal && err != nil, fault.KindOf(err) == fault.Unavailable:
		return nil, err
	case a != nil:
		return h.Resolve(ctx, a.ID)
	}
	name, host, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(handle, "acct:"), "@"), "@")
	err = h.store.Read(ctx, h.user, func(ctx context.Context, tx *db.Tx) error {
		a, err = tx.ActorCalled(ctx, name, host)
		return err
	})
	if err == nil && a == nil {
		err = errUnheld
	}
	if err != nil {
		return nil, err
	}
	return h.Resolve(ctx, a.ID)
}
