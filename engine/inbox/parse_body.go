package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// parseBody parses the body. It refuses an activity whose actor is suspended, or is on a blocked
// server or on this server. Then it selects the signatures that count: those by keys of the
// actor's server. If there are no such signatures, another actor passes the activity on. In that
// case only the first signature counts, so that nobody can make this server ask several servers
// for keys.
func (i *Inbox) parseBody(_ context.Context, x *receiving) error {
	var err error
	if x.Activity, err = readRequest(x, i.Local); err != nil {
		return err
	}
	x.parsed = x.Activity
	if err := i.checkLarge(x); err != nil {
		return err
	}
	sender := x.Activity.Actor
	if err := i.Verifier.Admits(sender); err != nil {
		return err
	}
	foreign := func(c signature.Claim) bool { return !vocab.IDOf(c.KeyID).SameOrigin(sender) }
	if own := slices.DeleteFunc(slices.Clone(x.claims), foreign); len(own) > 0 {
		x.claims = own
	} else {
		x.claims, x.foreign = x.claims[:1], true
	}
	return nil
}

// readRequest parses the activity in the body of a request. Pixelfed names this server's users and
// posts by the addresses of their pages. readRequest replaces these addresses in the activity with
// the ids of the users and posts.
func readRequest(x *receiving, local *actor.Local) (*vocab.Activity, error) {
	a, err := handler.ParseRequest(x.Body, x.Request.Header)
	if err != nil {
		return nil, err
	}
	d, changed := a.Doc.Renamed(local.ByPage)
	if !changed {
		return a, nil
	}
	return vocab.ActivityOf(d, d.JSON())
}
