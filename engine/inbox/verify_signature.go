package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
)

// verifySignature proves that the actor of the activity made the request: one of the claims is by a key that the actor
// lists, and holds. A host that signs by RFC 9421 takes it too.
func (i *Inbox) verifySignature(ctx context.Context, x *receiving) error {
	if x.gone {
		return nil
	}
	signer, err := i.Verifier.Signer(ctx, x.claims, x.Activity.Actor)
	if fault.KindOf(err) == fault.Gone { // which would tell the peer that the inbox is
		err = fault.Wrap(fault.Unauthenticated, "the signing key is gone", err).WithCode("key_gone")
	}
	if err != nil {
		return fmt.Errorf("verify request of %s: %w", x.Activity.Actor, err)
	}
	x.Actor = signer
	if x.claims[0].Dialect == signature.RFC9421 { // one request has claims of one dialect
		i.Learn(ctx, signer.ID.Host(), signature.RFC9421)
	}
	return nil
}
