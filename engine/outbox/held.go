package outbox

import (
	"context"
	"errors"
	"strings"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// actorFinder finds the actors that an action names.
type actorFinder interface {
	Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	Handle(ctx context.Context, handle string) (*vocab.Actor, error)
}

// actorsFor returns the actorFinder for the action. If an LLM engine dispatched the action, the
// result is the restricted one (held).
func (f *finder) actorsFor(x *exchange) actorFinder {
	if x.Assistant {
		return held{f, x.User}
	}
	return f.actors
}

// held is the actorFinder for an LLM engine. It finds only the user, and actors of which the
// user's database has data other than waiting requests. It sends no request to other servers,
// because an LLM engine could write private messages that it has read into the address of a
// request, and so reveal them to the server at that address.
type held struct {
	*finder
	user vocab.Username
}

// errUnheld means that the user's database has no data of the named actor or object. It does not
// tell whether the actor or object exists.
var errUnheld = errors.New("the user's database holds nothing of it")

func isUnheld(err error) bool { return errors.Is(err, errUnheld) }

// refuseUnheld refuses a parameter that names an actor or object of which the database has no
// data.
func refuseUnheld(name string) error {
	return fault.Wrap(fault.Forbidden, "the token may name only actors and objects that the user has here already", errUnheld).
		WithCode("not_known_here").At("/params/" + name)
}

// Resolve returns a stored copy of the actor that id names. It prefers the copy that
// h.actors.Known returns to the copy in the user's database.
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

// readCopy returns the copy of an actor in the user's database. It returns nil if the database has
// other data of the actor but no copy, and errUnheld if it has no data of the actor, or only data
// that waits among the requests.
func (h held) readCopy(ctx context.Context, id vocab.ID) (a *vocab.Actor, err error) {
	err = h.store.Read(ctx, h.user, func(ctx context.Context, tx *user.Tx) error {
		waits, err := tx.Requests.AreAllOf(ctx, id)
		if err == nil && waits {
			err = errUnheld
		}
		if err != nil {
			return err
		}
		if a, err = tx.Actors.Find(ctx, id); err != nil || a != nil {
			return err
		}
		holds, err := tx.Actors.IsHeld(ctx, id, "")
		if err == nil && !holds {
			err = errUnheld
		}
		return err
	})
	return a, err
}

// Handle returns the actor that had the handle when the actor was last fetched.
func (h held) Handle(ctx context.Context, handle string) (*vocab.Actor, error) {
	a, err := h.actors.KnownHandle(ctx, handle)
	switch {
	case fault.KindOf(err) == fault.Internal && err != nil, fault.KindOf(err) == fault.Unavailable:
		return nil, err
	case a != nil:
		return h.Resolve(ctx, a.ID)
	}
	name, host, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(handle, "acct:"), "@"), "@")
	err = h.store.Read(ctx, h.user, func(ctx context.Context, tx *user.Tx) error {
		a, err = tx.Actors.FindCalled(ctx, name, host)
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
