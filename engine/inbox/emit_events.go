package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
)

// emitEvents adds the activity's events to the user's outbox, to be committed with it, unless it
// is to be kept quiet. Those of strangers who have used up their budget are only counted.
func (p *applier) emitEvents(ctx context.Context, x *applying) error {
	if x.effects.Silent {
		return nil
	}
	if !p.mayTell(x) {
		x.tx.WithholdEvent(handler.Withheld(x.Now))
		return nil
	}
	object := x.Activity.Object.ID
	if p.Handlers.Lookup(x.Activity).Subject != nil {
		object = p.objectID(x)
	}
	told := handler.Payload{Activity: x.Activity.ID, Type: x.Activity.Type, Actor: x.Actor.ID, Object: object, Trust: trustOf(x)}
	for _, kind := range p.Handlers.EventTypes(&x.Received, x.effects) {
		if err := x.tx.AddEvent(ctx, handler.NewEvent(kind, told, x.Now)); err != nil {
			return err
		}
	}
	return nil
}

func trustOf(x *applying) string {
	if x.Follows {
		return handler.TrustContact
	}
	return handler.TrustStranger
}

// mayTell reports whether the activity's events are added: once for all tries to apply it.
func (p *applier) mayTell(x *applying) bool {
	if x.Follows {
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
