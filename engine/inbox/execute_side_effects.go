package inbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
)

// executeSideEffects runs the handler of the activity's type, and forwards the activity if the
// user must forward it to followers. An activity of an unknown type has no handler. It is stored,
// not refused. Whether to forward, and where to, is decided before the handler runs, because a
// Delete removes the object on which the decision depends.
func (p *applier) executeSideEffects(ctx context.Context, x *applying) error {
	forwards, err := p.forwarder.isOwedToFollowers(ctx, x)
	if err != nil {
		return err
	}
	var reached []user.Inbox
	if forwards {
		if reached, err = p.forwarder.listReached(ctx, x); err != nil {
			return err
		}
	}
	if err := p.runHandler(ctx, x); err != nil || !forwards || x.Request {
		return err // what waits among the user's requests must not fill those of the followers
	}
	return p.forwarder.forwardActivity(ctx, x, reached)
}

// runHandler runs the activity's handler and stores its effects in x.
func (p *applier) runHandler(ctx context.Context, x *applying) (err error) {
	x.effects, err = p.Handlers.Received(ctx, x.tx, &x.Received)
	x.Follows = (x.Follows || x.effects.Followed) && !x.effects.Unfollowed
	return err
}
