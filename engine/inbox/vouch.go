package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errDropped says that an activity is neither taken nor refused: the peer, which means well,
// would come again with it for days.
var errDropped = errors.New("the activity is dropped")

// voucher finds out whether activities are their actors' that others pass on.
type voucher struct {
	Deps
	*memory
	bounds *bounds
}

// vouchFor finds out whether an activity that somebody else passes on is its actor's: by a proof
// of the actor's, else by what the actor's own server says. The passer's signature proves
// nothing, nor does a Linked Data signature. For what that server says it is asked once, and not
// too often for one passer's domain.
func (v *voucher) vouchFor(ctx context.Context, x *receiving, passer *vocab.Actor) error {
	if v.Local.IsLocal(passer.ID) {
		return fault.New(fault.Unauthenticated, "a local actor does not come from outside").WithCode("local_actor")
	}
	x.passer = passer
	if !deletesItself(x.Activity) { // the account may be back since: an old proof buries nobody
		if proven, err := v.proveActor(ctx, x); err != nil || proven {
			return err
		}
	}
	if err := limitBy(v.bounds.askedForDomain, policy.RegistrableDomain(passer.ID.Host())); err != nil {
		return err
	}
	if x.Activity.Type == vocab.Delete {
		return v.confirmDelete(ctx, x)
	}
	return v.fetchActivity(ctx, x)
}

// proveActor reports whether the activity has a proof of its actor's, and finds that actor. One
// that does not hold is refused; one that cannot be verified, or whose key cannot be found, says
// nothing.
func (v *voucher) proveActor(ctx context.Context, x *receiving) (bool, error) {
	p, err := proof.Parse(x.Activity.Doc, v.Now())
	if err != nil || p == nil {
		return false, err
	}
	var author *vocab.Actor
	by := x.Activity.Actor
	err = v.runAside(ctx, x, func(ctx context.Context) (err error) {
		author, err = v.Verifier.Prover(ctx, p, by)
		return err
	})
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("verify proof of %s: %w", by, err)
	}
	x.Actor = author
	return true, nil
}

// refuseDisproven refuses an activity that its actor signed the delivery of, when it has a proof
// that does not hold. Whether that can be told now does not matter.
func (v *voucher) refuseDisproven(ctx context.Context, x *receiving) error {
	_, err := v.proveActor(ctx, x)
	if x.Activity == nil { // there is no room for it any more
		return err
	}
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited:
		return nil
	}
	return err
}

// fetchActivity puts what the actor's server shows under the activity's id in the place of what
// came.
func (v *voucher) fetchActivity(ctx context.Context, x *receiving) error {
	if !x.Activity.ID.SameOrigin(x.Activity.Actor) {
		return v.endUnvouched(ctx, x, fault.New(fault.Protocol, "its id is not on its actor's server"))
	}
	o, raw, err := v.fetchObject(ctx, x, x.Activity.ID, nil)
	if err != nil {
		return v.endUnvouched(ctx, x, err)
	}
	a, err := vocab.ActivityOf(o.Doc, raw)
	if err == nil && (!a.ID.Same(x.Activity.ID) || !a.Actor.Same(x.Activity.Actor)) {
		err = fault.New(fault.Protocol, "it is another activity")
	}
	if err != nil {
		return v.endUnvouched(ctx, x, err)
	}
	if x.Actor, err = v.Actors.Resolve(ctx, a.Actor); err != nil {
		return fmt.Errorf("resolve %s: %w", a.Actor, unresolvedFault(err))
	}
	x.Activity = a
	return nil
}

// confirmDelete asks for what is said to be deleted. That it is gone is all that its server says,
// so that a Delete which says no more takes the place of what came: not even the id of that can
// be believed. Where the server says no more than that nothing is there, the Delete is dropped,
// as one that an actor signs itself.
func (v *voucher) confirmDelete(ctx context.Context, x *receiving) error {
	actor, object := x.Activity.Actor, x.Activity.Object.ID
	err := v.checkDeleted(ctx, x, actor, object)
	switch kind := fault.KindOf(err); {
	case kind == fault.NotFound:
		return errDropped
	case kind != fault.Gone:
		return v.endUnvouched(ctx, x, err)
	}
	x.gone, x.Actor = object.Same(actor), &vocab.Actor{ID: actor}
	return x.rewriteDelete()
}

func deletesItself(a *vocab.Activity) bool {
	return a.Type == vocab.Delete && a.Object.ID.Same(a.Actor)
}

// rewriteDelete puts a Delete that says no more than that in the place of one that nobody signed.
// An object is deleted once; an account may come back and be deleted again, so that each Delete
// of an actor has an id of its own.
func (x *receiving) rewriteDelete() (err error) {
	actor, object := x.Activity.Actor, x.Activity.Object.ID
	id := string(object) + "#delete"
	if object.Same(actor) {
		id += fmt.Sprintf("-%.8x", sha256.Sum256([]byte(x.Activity.ID)))
	}
	d := vocab.Doc{"@context": vocab.ContextAS, "id": id, "type": vocab.Delete, "actor": string(actor), "object": string(object)}
	x.Activity, err = vocab.ParseActivity(d.JSON())
	return err
}

// checkDeleted returns Gone when the server of an object says that it was deleted, else why that
// is not known.
func (v *voucher) checkDeleted(ctx context.Context, x *receiving, actor, object vocab.ID) error {
	if !object.SameOrigin(actor) || object != object.Document() {
		return fault.New(fault.Protocol, "it is no document of the actor's server")
	}
	var err error
	if object.Same(actor) {
		_, err = v.fetchActor(ctx, x, actor)
	} else if o, _, fail := v.fetchObject(ctx, x, object, nil); fail != nil {
		err = fail
	} else if o.Type == "Tombstone" && o.ID.Same(object) {
		err = fault.New(fault.Gone, "it was deleted")
	}
	if err == nil {
		err = fault.New(fault.Protocol, "it is still there")
	}
	return err
}

// endUnvouched returns how an activity ends for which the actor's server does not vouch. A passer
// of an activity with a Linked Data signature takes that for proof enough.
func (v *voucher) endUnvouched(ctx context.Context, x *receiving, err error) error {
	if err := unansweredFault(err, "the actor's server does not answer"); err != nil {
		return err
	}
	v.Log.InfoContext(ctx, "activity not vouched for", "activity", x.Activity.ID, "actor", x.Activity.Actor, "host", x.passer.ID.Host(), "err", err)
	if x.Activity.Doc["signature"] != nil {
		return errDropped
	}
	return fault.Wrap(fault.Unauthenticated, "the activity is signed by another actor, and its own actor's server does not show it", err).WithCode("foreign_key")
}
