package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// parseBody parses the body, once, and refuses an actor that no claim can speak for: the key must lie on the actor's own
// server, which is not blocked and not us.
func (i *Inbox) parseBody(_ context.Context, x *receiving) error {
	var err error
	if x.Activity, err = vocab.ParseActivity(x.Body); err != nil {
		return err
	}
	actor := x.Activity.Actor
	if i.Local.IsLocal(actor) {
		return fault.New(fault.Unauthenticated, "a local actor does not come from outside").WithCode("local_actor")
	}
	if err := i.Gate.Check(actor.Host()); err != nil {
		return err
	}
	if !slices.ContainsFunc(x.claims, func(c signature.Claim) bool { return vocab.ID(c.KeyID).SameOrigin(actor) }) {
		return fault.New(fault.Unauthenticated, "the signing key is not on the actor's server").WithCode("foreign_key")
	}
	return nil
}
