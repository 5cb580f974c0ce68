package inbox

import "context"

// executeSideEffects runs the handler of the activity's type, and passes on what must be. A type nobody knows has no
// handler: it is stored, not refused. What is to be passed on is found out first: a Delete leaves nothing to find it by.
func (i *Inbox) executeSideEffects(ctx context.Context, x *applying) error {
	forwards, err := i.forwards(ctx, x)
	if err != nil {
		return err
	}
	if err := i.handle(ctx, x); err != nil || !forwards {
		return err
	}
	if !i.mayForward(x) {
		i.notForwarded(ctx, x)
		return nil
	}
	return i.forward(ctx, x)
}

// handle runs the activity's handler and keeps what it decided.
func (i *Inbox) handle(ctx context.Context, x *applying) (err error) {
	x.effects, err = i.Handlers.Received(ctx, x.tx, &x.Received)
	x.Follows = (x.Follows || x.effects.Followed) && !x.effects.Unfollowed
	return err
}
