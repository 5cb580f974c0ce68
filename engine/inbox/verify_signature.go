package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// verifySignature proves who made the request. One of the request's signatures must be by a key
// that the signer's own document lists. Only a verified request is counted against the signer and
// the signer's host, because otherwise anybody could use up the share of others by naming their
// keys. When the signer is not the activity's actor, there must be another proof that the actor
// made the activity.
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
	if err != nil {
		return fmt.Errorf("verify request of %s: %w", id, actor.ExplainGone(err))
	}
	i.Heard(ctx, signer.ID.Host(), x.claims[0].Dialect, x.Request.UserAgent()) // all claims of a request are of one dialect
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

// findSigner finds the actor who signed the request. An actor's Update of itself may be signed
// by the new key that the Update announces. So when no remembered key verifies the signature,
// findSigner fetches the actor once more. It does so at most once a minute for a client address
// and actor, because nothing is proven yet.
func (i *Inbox) findSigner(ctx context.Context, x *receiving, id vocab.ID, updatesItself bool) (*vocab.Actor, error) {
	signer, err := i.Verifier.Signer(ctx, x.claims, id)
	if fault.KindOf(err) != fault.Unauthenticated || !updatesItself {
		return signer, err
	}
	if first, _ := i.bounds.announced.Allow(x.payer + " " + string(id.Canonical())); !first {
		return signer, err
	}
	if _, fail := i.Actors.Changed(ctx, id, x.came, false); fail != nil {
		return signer, err
	}
	return i.Verifier.Signer(ctx, x.claims, id)
}
