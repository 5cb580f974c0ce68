package outbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// resolveRecipients finds what the action is about and who is addressed. Through which inboxes they
// are reached is chosen when the activity is stored. The user's own actor comes first: its document
// holds its keys, so what could never be signed ends here, before anything is stored.
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
	for _, id := range known { // before anything of it enters the user's database
		if err := o.Instance.Acquaintances.Add(ctx, id, []vocab.Username{x.User}, false); err != nil {
			return err
		}
	}
	return o.renewRecipients(ctx, x)
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

// explainUnfound names the cause for which no actor was found under the parameter of that name, if
// that lies with the parameter or with another server. The policy's refusal, and what is wrong
// here, keep their own words.
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
	case e.Kind == fault.Unavailable && e.Code == "": // with a code it is this server that cannot ask now
		return refuse(fault.Unavailable, "unreachable", "the server of "+name+" does not answer")
	}
	switch e.Kind {
	case fault.NotFound, fault.Gone, fault.NoUser, fault.Protocol, fault.NotAcceptable:
		return refuse(fault.Unprocessable, "no_such_user", name+" names nobody that its server shows as an actor")
	}
	return err
}

// checkActive refuses an actor of this server who is no active user.
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

// addNamed addresses actors by name, each once, but never the one who acts.
func (x *exchange) addNamed(actors ...*vocab.Actor) {
	for _, a := range actors {
		known := func(b *vocab.Actor) bool { return b.ID.Same(a.ID) }
		if !known(x.actor) && !slices.ContainsFunc(x.named, known) {
			x.named = append(x.named, a)
		}
	}
}

// reachActor returns the actor with this id, or what the user's own database knows of it: whoever
// was told something must be told when it is taken back, also when its server does not describe it
// just now. When nothing is known of it, it has only the id, and nothing is sent to it.
func (f *finder) reachActor(ctx context.Context, x *exchange, id vocab.ID) (*vocab.Actor, error) {
	a, failed := f.actorsFor(x).Resolve(ctx, id)
	if failed == nil {
		return a, nil
	}
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		if a, err = tx.Actor(ctx, id); err == nil && a == nil {
			a, err = tx.Actor(ctx, id.Canonical())
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

// isOther reports whether what is addressed is another actor, and no collection that stands for
// many.
func isOther(id vocab.ID, author *vocab.Actor) bool {
	return id != vocab.Public && id != audience.Here(author.ID) && !id.Same(author.Followers) && !id.Same(author.ID)
}

// keepLocal leaves out of those who are addressed whoever is on another server.
func (f *finder) keepLocal(x *exchange) {
	x.named = slices.DeleteFunc(slices.Clone(x.named), f.isElsewhere)
	x.unnamed = nil
}

func (f *finder) isElsewhere(a *vocab.Actor) bool { return !f.local.IsLocal(a.ID) }

// reachAll addresses again whoever an earlier activity or object addressed.
func (f *finder) reachAll(ctx context.Context, x *exchange, to vocab.Addressing) error {
	x.to, x.cc = to.To, to.Cc
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
