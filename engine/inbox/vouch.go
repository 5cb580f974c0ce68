package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errDropped says that an activity is neither accepted nor refused. The peer has done nothing
// wrong, and would send the activity again for days if it were refused.
var errDropped = errors.New("the activity is dropped")

// voucher finds out whether an activity that another actor passes on is really its own actor's.
type voucher struct {
	Deps
	*memory
	bounds *bounds
}

// vouchFor finds out whether an activity that the passer sends is really its actor's. A proof
// by the actor shows this. Without a proof, vouchFor fetches the activity from the actor's own
// server. The passer's signature and a Linked Data signature prove nothing. The actor's server
// is asked once for an activity, and within a budget of the passer's domain.
func (v *voucher) vouchFor(ctx context.Context, x *receiving, passer *vocab.Actor) error {
	if v.Local.IsLocal(passer.ID) {
		return fault.New(fault.Unauthenticated, "a local actor does not come from outside").WithCode("local_actor")
	}
	x.passer = passer
	// A proof is not enough to delete an account, because the account may have come back since
	// the proof was made.
	if !deletesItself(x.Activity) {
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

// proveActor reports whether the activity has a valid proof by its actor, and sets x.Actor to
// that actor. It refuses an activity whose proof is wrong. The result is false, without an
// error, when there is no proof that this server can verify, the proof's key does not exist, or
// the proof may be outdated.
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
	return !handler.IsOutdated(x.Activity, p.Created, v.Now()), nil
}

// refuseDisproven refuses an activity with a wrong proof, even if the activity's own actor
// signed the request. It accepts the activity when the proof cannot be checked now.
func (v *voucher) refuseDisproven(ctx context.Context, x *receiving) error {
	_, err := v.proveActor(ctx, x)
	if x.Activity == nil { // no memory was free to parse it again
		return err
	}
	if fault.IsPassing(err) {
		return nil
	}
	return err
}

// fetchActivity replaces the activity by the one that the actor's server shows under the
// activity's id.
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

// confirmDelete asks the actor's server whether the object of a Delete is gone. The server
// confirms nothing else in the Delete, not even its id, so a Delete that says only this replaces
// the one that came. When the server answers only that it has no such object, the Delete is
// dropped, as resolveActor drops one that the actor signed itself.
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

// rewriteDelete replaces a Delete that its actor has not proven by one that says only which object
// is deleted. An object is deleted once, so its Delete has one id. An account may come back and be
// deleted again, so each Delete of an actor has an id of its own.
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

// checkDeleted returns the fault Gone when the object's server says that the object was
// deleted. Otherwise it returns an error that says why the deletion is not proven.
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

// endUnvouched returns the result for an activity that the actor's server does not vouch for. An
// activity with a Linked Data signature is dropped and not refused, because its passer considers
// that signature a sufficient proof.
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
