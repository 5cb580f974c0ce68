package outbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveRecipients finds the object of the action and the addressed actors. Their inboxes are
// chosen later, when the activity is stored. The user's own actor is read first. Its document has
// the user's keys. So if the activity could not be signed, the action is refused here, before
// anything is stored.
func (o *Outbox) resolveRecipients(ctx context.Context, x *exchange) (err error) {
	if x.actor, err = o.Local.Actor(x.User); err != nil {
		return refuseWithoutKeys(err)
	}
	if err := x.intent.findRecipients(ctx, o.finder, x); err != nil {
		return err
	}
	var known []vocab.ID
	for _, f := range x.fetched {
		known = append(known, f.AttributedTo)
	}
	for _, a := range x.named {
		known = append(known, a.ID)
	}
	for _, id := range known { // this must be stored before any data of the actor is in the user's database
		if err := o.Instance.Acquaintances.Add(ctx, id, []vocab.Username{x.User}, false); err != nil {
			return err
		}
	}
	return o.finder.renewRecipients(ctx, x)
}

func refuseWithoutKeys(err error) error {
	return fault.Wrap(fault.Unavailable, "the user's keys or profile cannot be read", err).WithCode("keys_unavailable").WithHint(fault.Hint(err))
}

// findActor returns the actor that a parameter names by its id or handle.
func (f *finder) findActor(ctx context.Context, x *exchange, name, value string) (*vocab.Actor, error) {
	if value == "" {
		return nil, badParam(name, name+" is missing")
	}
	var a *vocab.Actor
	id, err := vocab.ParseID(value)
	if err == nil {
		a, err = f.actorsFor(x).Resolve(ctx, id)
	} else {
		a, err = f.actorsFor(x).Handle(ctx, value)
	}
	if err == nil {
		err = f.checkActive(ctx, a.ID)
	}
	if isUnheld(err) {
		return nil, refuseUnheld(name)
	}
	if err != nil {
		return nil, fmt.Errorf("find actor %.100s: %w", value, explainUnfound(name, err))
	}
	return a, nil
}

// explainUnfound returns the refusal of an action whose parameter with this name is an actor that
// was not found. It names the cause if that is the parameter or another server. A refusal by the
// policy and an error of this server are returned unchanged.
func explainUnfound(name string, err error) error {
	e := fault.Of(err)
	if e == nil {
		return err
	}
	refuse := func(kind fault.Kind, code, words string) error {
		return fault.Wrap(kind, words, err).WithCode(code).At("/params/" + name).After(e.RetryAfter)
	}
	switch {
	case e.Kind == fault.Invalid:
		return refuse(fault.Unprocessable, "invalid_parameter", name+" names no actor")
	case e.Kind == fault.NoHost:
		return refuse(fault.Unprocessable, "no_such_host", name+" names a host that there is not")
	case e.Code == actor.PeerRefused:
		return refuse(fault.Unprocessable, actor.PeerRefused, "the server of "+name+" refuses to show the actor")
	case e.Kind == fault.Unavailable && !fault.IsOurs(err):
		return refuse(fault.Unavailable, "unreachable", "the server of "+name+" does not answer")
	}
	switch e.Kind {
	case fault.NotFound, fault.Gone, fault.NoUser, fault.Protocol, fault.NotAcceptable:
		return refuse(fault.Unprocessable, "no_such_user", name+" names nobody that its server shows as an actor")
	}
	return err
}

// checkActive refuses an actor of this server that is not an active user.
func (f *finder) checkActive(ctx context.Context, id vocab.ID) error {
	u, local := f.local.Owner(id)
	if !local {
		return nil
	}
	if there, err := f.instance.Users.Active(ctx, []vocab.Username{u}); err != nil || len(there) == 1 {
		return err
	}
	return fault.New(fault.NoUser, "there is no such user here")
}

// addNamed adds an actor to the named recipients, unless the actor is one of them or the sender.
func (x *exchange) addNamed(a *vocab.Actor) {
	known := func(b *vocab.Actor) bool { return b.ID.Same(a.ID) }
	if !known(x.actor) && !slices.ContainsFunc(x.named, known) {
		x.named = append(x.named, a)
	}
}

// reachActor returns the actor that id names. If the actor cannot be fetched, the copy in the
// user's database is used. An actor that got an activity must also get the Undo of that activity,
// even while the actor's server does not answer. Without a copy the result has only the id, and
// nothing is sent to the actor.
func (f *finder) reachActor(ctx context.Context, x *exchange, id vocab.ID) (*vocab.Actor, error) {
	return f.reachWithin(ctx, ctx, x, id)
}

// reachWithin does what reachActor does, but the search for the actor ends with the context in
// the parameter asking.
func (f *finder) reachWithin(ctx, asking context.Context, x *exchange, id vocab.ID) (*vocab.Actor, error) {
	a, failed := f.actorsFor(x).Resolve(asking, id)
	if failed == nil {
		return a, nil
	}
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		if a, err = tx.Actors.Find(ctx, id); err == nil && a == nil {
			a, err = tx.Actors.Find(ctx, id.Canonical())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if a == nil {
		f.log.DebugContext(ctx, "recipient could not be reached", "actor", id, "err", failed)
		a = &vocab.Actor{ID: id}
	}
	return a, nil
}

// addressCounterpart makes the actor that id names the counterpart, and addresses nobody else. It
// finds the actor by reachActor.
func (f *finder) addressCounterpart(ctx context.Context, x *exchange, id vocab.ID) (err error) {
	if x.counterpart, err = f.reachActor(ctx, x, id); err != nil {
		return err
	}
	x.to = []vocab.ID{id}
	x.addNamed(x.counterpart)
	return nil
}

// isOther reports whether an addressed id is that of another actor, that is, neither the id of
// the author nor that of a collection that can be addressed.
func isOther(id vocab.ID, author *vocab.Actor) bool {
	return id != vocab.Public && id != audience.Here(author.ID) && !id.Same(author.Followers) && !id.Same(author.ID)
}

// keepLocal removes actors of other servers from the named recipients, and all recipients through
// groups.
func (f *finder) keepLocal(x *exchange) {
	x.named = slices.DeleteFunc(slices.Clone(x.named), f.isElsewhere)
	x.unnamed = nil
}

func (f *finder) isElsewhere(a *vocab.Actor) bool { return !f.local.IsLocal(a.ID) }

// reachAll addresses the same actors and collections as an earlier activity or object.
func (f *finder) reachAll(ctx context.Context, x *exchange, to vocab.Addressing) error {
	x.to, x.cc, x.communities = to.To, to.Cc, to.Audience
	for _, id := range to.All() {
		if !isOther(id, x.actor) {
			continue
		}
		a, err := f.reachActor(ctx, x, id)
		if err != nil {
			return err
		}
		x.addNamed(a)
	}
	return nil
}
