package inbox

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/policy"
)

// emitEvents adds the activity's events to the user's outbox, to be committed with it, unless it
// is to be kept quiet. Those of strangers who have used up their budget are only counted.
func (p *applier) emitEvents(ctx context.Context, x *applying) error {
	if x.effects.Silent {
		return nil
	}
	trust, err := trustOf(ctx, x)
	if err != nil {
		return err
	}
	if !p.mayTell(x, trust) {
		x.tx.WithholdEvent(handler.Withheld(x.Now))
		return nil
	}
	object := x.Activity.Object.ID
	if p.Handlers.Lookup(x.Activity).Subject != nil {
		object = p.objectID(x)
	}
	told := handler.Payload{Activity: x.Activity.ID, Type: x.Activity.Type, Actor: x.Actor.ID, Object: object, Trust: trust}
	for _, kind := range p.Handlers.EventTypes(&x.Received, x.effects) {
		if err := x.tx.AddEvent(ctx, handler.NewEvent(kind, told, x.Now)); err != nil {
			return err
		}
	}
	return nil
}

// trustOf returns how far the user trusts the sender, with what the activity changes of that.
func trustOf(ctx context.Context, x *applying) (string, error) {
	if x.Follows {
		return handler.TrustContact, nil
	}
	for _, kind := range db.FriendTypes {
		friendship, err := x.tx.Relationship(ctx, kind, x.Actor.ID)
		if err != nil {
			return "", err
		}
		if friendship != nil && friendship.Status == db.Accepted {
			return handler.TrustContact, nil
		}
	}
	return handler.TrustStranger, nil
}

// mayTell reports whether the activity's events are added: once for all tries to apply it.
func (p *applier) mayTell(x *applying, trust string) bool {
	if trust == handler.TrustContact {
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
