package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// verifySignature proves who made the request: one of the claims is by a key that this actor
// lists, and holds. Only then is the request counted against its host and its actor: before,
// anybody could use up what others may send by naming their keys. When that is not the actor of
// the activity, there must be another proof that the activity is its actor's.
func (i *Inbox) verifySignature(ctx context.Context, x *receiving) error {
	if x.gone {
		return nil
	}
	var signer *vocab.Actor
	id, updatesItself := x.Activity.Actor, !x.foreign && handler.UpdatesItself(x.Activity)
	err := i.memory.runAside(ctx, x, func(ctx context.Context) (err error) {
		signer, err = i.findSigner(ctx, x, id, updatesItself)
		return err
	})
	if fault.KindOf(err) == fault.Gone { // which would tell the peer that the inbox is
		err = fault.Wrap(fault.Unauthenticated, "the signing key is gone", err).WithCode("key_gone")
	}
	if err != nil {
		return fmt.Errorf("verify request of %s: %w", id, err)
	}
	i.Heard(ctx, signer.ID.Host(), x.claims[0].Dialect, x.Request.UserAgent()) // one request has claims of one dialect
	if err := i.budgets.countRequest(x, signer.ID); err != nil {
		return err
	}
	x.signer = signer
	ctx = paidBySigner(ctx, x)
	passes := !signer.ID.Same(x.Activity.Actor)
	if (passes || x.Activity.Type == vocab.Announce) && i.Relays.IsAccepted(signer.ID) {
		return i.voucher.takeRelayed(ctx, x, signer)
	}
	if passes {
		return i.voucher.vouchFor(ctx, x, signer)
	}
	x.Actor = signer
	return i.voucher.refuseDisproven(ctx, x)
}

// findSigner finds out who signed the request. An Update of an actor may be signed by the very
// key that it announces: where the keys that are known do not verify it, the actor is asked for
// once more, at most once a minute for a client address: nothing is proven yet.
func (i *Inbox) findSigner(ctx context.Context, x *receiving, id vocab.ID, updatesItself bool) (*vocab.Actor, error) {
	signer, err := i.Verifier.Signer(ctx, x.claims, id)
	if fault.KindOf(err) != fault.Unauthenticated || !updatesItself {
		return signer, err
	}
	if first, _ := i.bounds.announced.Allow(x.payer + " " + string(id.Canonical())); !first {
		return signer, err
	}
	if _, fail := i.Actors.Changed(ctx, id, x.came); fail != nil {
		return signer, err
	}
	return i.Verifier.Signer(ctx, x.claims, id)
}
