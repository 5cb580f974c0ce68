package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Relays are the servers that forward public posts to this server because it subscribed to them.
type Relays interface {
	// IsAccepted reports whether actor is a relay that has accepted the subscription.
	IsAccepted(actor vocab.ID) bool
	// IsAnswer reports whether an activity answers a subscription.
	IsAnswer(a *vocab.Activity) bool
	// RecordAnswer records the answer to a subscription, and reports whether the actor was
	// entitled to give it.
	RecordAnswer(ctx context.Context, actor, follow vocab.ID, state string) (bool, error)
	// AcceptFollowBack answers a Follow whose object is the instance actor, and reports whether
	// the follower is a relay.
	AcceptFollowBack(ctx context.Context, by *vocab.Actor, follow vocab.ID) (bool, error)
}

// errStranger says that isWanted has found no local user that an activity from a relay may
// concern.
var errStranger = fmt.Errorf("it is a stranger's: %w", errDropped)

// takeRelayed receives an activity that an accepted relay passes on. A post without a proof by its
// author is fetched from the author's own server, and only its id is taken from the relay. An
// activity is dropped if isWanted finds, before another server is asked, that it concerns no local
// user. It is also dropped if the relay's budget is used up. A relay is never told that an
// activity was refused, because the relay would send the activity again, or consider this server
// unavailable.
func (v *voucher) takeRelayed(ctx context.Context, x *receiving, relay *vocab.Actor) error {
	x.relay = true
	wanted, err := v.isWanted(ctx, x)
	if err != nil {
		return err
	}
	if !wanted {
		return errStranger
	}
	if x.Activity.Type != vocab.Announce && !deletesItself(x.Activity) {
		x.passer = relay
		if proven, err := v.proveActor(ctx, x); err != nil || proven {
			return dropFault(err)
		}
	}
	if err := limitBy(v.bounds.fetchedForRelay, string(relay.ID)); err != nil {
		return dropFault(err)
	}
	if !v.Handlers.Lookup(x.Activity).InFeed {
		return dropFault(v.vouchFor(ctx, x, relay))
	}
	x.passer = relay
	return dropFault(v.fetchPost(ctx, x))
}

// isWanted reports whether an activity that a relay passes on may concern a local user. An
// Announce shows only the server of its post, so it is wanted if a local user follows an actor
// of that server. Other users that the post addresses get the post from its author.
func (v *voucher) isWanted(ctx context.Context, x *receiving) (bool, error) {
	a := x.Activity
	if a.Type == vocab.Announce {
		id := a.Object.ID
		if id == "" || v.Local.Host() == id.Host() || id != id.Document() {
			return false, nil
		}
		return v.Store.Instance.Acquaintances.IsFollowed(ctx, id.Origin())
	}
	if a.Type == vocab.Create && !a.Object.ID.SameOrigin(a.Actor) {
		return false, nil
	}
	known, err := v.Store.Instance.Acquaintances.Users(ctx, a.Actor, !v.Handlers.Lookup(a).Concern.Holders)
	if err != nil {
		return false, err
	}
	return len(known) > 0 || slices.ContainsFunc(a.All(), func(id vocab.ID) bool {
		_, local := v.Local.Owner(id)
		return local
	}), nil
}

// fetchPost fetches from the author's server the post that a relay passes on, and puts the post's
// Create in place of the relay's activity. If the author's server shows a Create under the
// announced id, fetchPost takes that Create. If the server shows a public post, fetchPost builds a
// Create from the post. The id of the built Create is the post's id with a fragment, so the post
// arrives once even if several relays pass it on.
func (v *voucher) fetchPost(ctx context.Context, x *receiving) error {
	o, raw, err := v.fetchObject(ctx, x, x.Activity.Object.ID, nil)
	if err != nil {
		return err
	}
	a := &vocab.Activity{}
	if o.Doc.IsActivity() {
		a, err = vocab.ActivityOf(o.Doc, raw)
	} else if o.OwnAuthors() {
		a, err = createOf(o)
	}
	if err == nil && (a.Type != vocab.Create || !audience.IsPublic(a.Addressing) || !a.Actor.SameOrigin(o.ID)) {
		err = fault.New(fault.Protocol, "it is no public post by an actor of its server")
	}
	if err != nil {
		return err
	}
	if err := v.Verifier.Admits(a.Actor); err != nil {
		return err
	}
	if x.Actor, err = v.Actors.Resolve(ctx, a.Actor); err != nil {
		return fmt.Errorf("resolve %s: %w", a.Actor, err)
	}
	x.Activity = a
	return nil
}

// createOf returns a Create for a post that its server shows.
func createOf(o *vocab.Object) (*vocab.Activity, error) {
	d := vocab.Doc{"@context": vocab.ContextAS, "id": string(o.ID.Document()) + "#create", "type": vocab.Create, "actor": string(o.AttributedTo), "object": o.Doc}
	for _, name := range []string{"@context", "to", "cc", "published"} {
		if v, there := o.Doc[name]; there {
			d[name] = v
		}
	}
	return vocab.ParseActivity(d.JSON())
}

// withholdFault wraps the error that ends a relay's request in errDropped, as dropFault does. But
// it returns an error of the kind Unavailable or Busy unchanged, because the relay may be told
// that the engine accepts nothing now.
func withholdFault(err error) error {
	if kind := fault.KindOf(err); kind == fault.Unavailable || kind == fault.Busy {
		return err
	}
	return dropFault(err)
}

// dropFault wraps an error in errDropped, so that the relay is not told of the error. It does
// not do so if this server is the cause of the error. With errFull, which is such an error, there
// is no activity any more that could be dropped; see runAside.
func dropFault(err error) error {
	if err == nil || errors.Is(err, errDropped) || fault.IsOurs(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errDropped, err)
}

// takeRelayAnswer records a relay's answer to the instance actor's Follow. The answer counts
// only when the relay's own actor has signed it.
func (i *Inbox) takeRelayAnswer(ctx context.Context, x *receiving) error {
	state := instance.RelayAccepted
	if x.Activity.Type == vocab.Reject {
		state = instance.RelayRejected
	}
	if x.passer != nil {
		return errDropped
	}
	known, err := i.Relays.RecordAnswer(ctx, x.Actor.ID, x.Activity.Object.ID, state)
	if err == nil && !known {
		i.Log.InfoContext(ctx, "answer to no Follow", "activity", x.Activity.ID, "type", x.Activity.Type, "actor", x.Actor.ID)
	}
	return err
}

// relayOutcome names the outcome of an activity that a relay passed on, for the metrics.
func relayOutcome(x *receiving, err error) string {
	switch {
	case errors.Is(err, errStranger), err == nil && len(x.Recipients) == 0:
		return "stranger"
	case err == nil:
		return "taken"
	case fault.Of(err) == nil && errors.Is(err, errDropped):
		return "refused"
	}
	return outcomeOf(err)
}
