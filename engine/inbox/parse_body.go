package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// parseBody parses the body, once, refuses an actor who is suspended or whose server is blocked
// or us, and picks the claims that count: those by keys of that server. Where there is none,
// somebody else passes the activity on, and only the first claim counts: nobody makes us ask
// several servers.
func (i *Inbox) parseBody(_ context.Context, x *receiving) error {
	var err error
	if x.Activity, err = vocab.ParseActivity(x.Body); err != nil {
		return err
	}
	x.parsed = x.Activity
	actor := x.Activity.Actor
	if err := i.Verifier.Admits(actor); err != nil {
		return err
	}
	foreign := func(c signature.Claim) bool { return !vocab.IDOf(c.KeyID).SameOrigin(actor) }
	if own := slices.DeleteFunc(slices.Clone(x.claims), foreign); len(own) > 0 {
		x.claims = own
	} else {
		x.claims, x.foreign = x.claims[:1], true
	}
	return nil
}
