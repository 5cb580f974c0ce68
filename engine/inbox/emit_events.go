package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/handler"
)

// emitEvents adds the activity's events to the user's outbox, to be committed with it, unless it is to be kept quiet.
func (i *Inbox) emitEvents(ctx context.Context, x *applying) error {
	if x.Silent {
		return nil
	}
	p := handler.Payload{Activity: x.Activity.ID, Type: x.Activity.Type, Actor: x.Actor.ID, Object: x.Activity.Object.ID, Trust: trust(x)}
	for _, kind := range handler.EventTypes(&x.Received) {
		if err := x.tx.AddEvent(ctx, handler.NewEvent(kind, p, x.Now)); err != nil {
			return err
		}
	}
	return nil
}

func trust(x *applying) string {
	if x.Follows {
		return handler.TrustContact
	}
	return handler.TrustStranger
}
