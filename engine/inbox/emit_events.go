package inbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
)

// emitEvents adds the activity's events to the event_outbox table of the user's database, in
// the transaction that stores the activity. It adds none if the handler marked the activity as
// silent, or if the activity may have been applied before and changes nothing now. Events that
// strangers cause beyond their budget are only counted.
func (p *applier) emitEvents(ctx context.Context, x *applying) error {
	// A stale sender announced a change that could not be fetched. The renewer stores that
	// change later without an event.
	isRepetition := x.again && x.effects.Unchanged && !p.Actors.IsStale(x.Actor.ID)
	if x.effects.Silent || isRepetition {
		return nil
	}
	trust, err := x.Trust(ctx, x.tx)
	if err != nil {
		return err
	}
	if !x.Tells(trust) {
		return nil
	}
	x.Request = x.Request || x.asks
	object := x.Activity.Object.ID
	if p.Handlers.Lookup(x.Activity).Subject != nil {
		object = p.objectID(x)
	}
	told := handler.Payload{Activity: x.Activity.ID, Type: x.Activity.Type, Actor: x.Actor.ID, Object: object, Trust: trust}
	for _, kind := range p.Handlers.EventTypes(&x.Received, x.effects) {
		if err := x.tx.Events.Add(ctx, handler.NewEvent(kind, told, x.Now)); err != nil {
			return err
		}
	}
	return nil
}

// tells returns a function that is called for each event of an activity. That function reports
// whether the event may be added, and counts the event when it may not.
func (p *applier) tells(x *applying) func(trust string) bool {
	return func(trust string) bool {
		may := p.mayTell(x, trust)
		if !may {
			x.tx.Events.Withhold(handler.Withheld(x.Now))
		}
		return may
	}
}

// mayTell reports whether the activity's events are added. It asks the budget only once, even if
// the activity is applied again.
func (p *applier) mayTell(x *applying, trust string) bool {
	if trust != user.TrustStranger {
		return true
	}
	if x.told == nil {
		share := p.bounds.events
		if !p.Handlers.Knows(x.Activity) {
			share = p.bounds.idleEvents
		}
		may, _ := share.Allow(x.User.String(), policy.RegistrableDomain(x.Actor.ID.Host()), 0)
		x.told = &may
	}
	return *x.told
}

// rejects returns the function for Received.Rejects. It asks the budget only once, even if the
// activity is applied again.
func (b *bounds) rejects(x *applying) func() bool {
	return func() bool {
		if x.rejected == nil {
			may := b.countReject(x)
			x.rejected = &may
		}
		return *x.rejected
	}
}

// countReject counts a Reject for the sender, and then for its domain, and reports whether both may
// cause it. So an actor that repeats its Follow uses up nothing of the others of its domain. The
// sender is counted apart for each user.
func (b *bounds) countReject(x *applying) bool {
	pair := x.User.String() + " " + string(x.Actor.ID)
	if may, _ := b.rejectedOfActor.Ready(pair); !may {
		return false
	}
	may, _ := b.rejected.Allow(policy.RegistrableDomain(x.Actor.ID.Host()))
	if may {
		b.rejectedOfActor.Spend(pair, 1)
	}
	return may
}
