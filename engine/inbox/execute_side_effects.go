package inbox

import "context"

// executeSideEffects runs the handler of the activity's type, and passes on what must be. A type
// nobody knows has no handler: it is stored, not refused. Whether it is forwarded is decided
// first: a Delete leaves nothing to decide it by.
func (p *applier) executeSideEffects(ctx context.Context, x *applying) error {
	forwards, err := p.isOwedToFollowers(ctx, x)
	if err != nil {
		return err
	}
	if err := p.runHandler(ctx, x); err != nil || !forwards {
		return err
	}
	if !p.mayForward(x) {
		p.logNotForwarded(ctx, x)
		return nil
	}
	return p.forwardToFollowers(ctx, x)
}

// runHandler runs the activity's handler and keeps what it decided.
func (p *applier) runHandler(ctx context.Context, x *applying) (err error) {
	x.effects, err = p.Handlers.Received(ctx, x.tx, &x.Received)
	x.Follows = (x.Follows || x.effects.Followed) && !x.effects.Unfollowed
	return err
}
