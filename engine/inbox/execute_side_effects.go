package inbox

import "context"

// executeSideEffects runs the handler of the activity's type, and passes on what must be. A type nobody knows has no
// handler: it is stored, not refused. What is to be passed on is found out first: a Delete leaves nothing to find it by.
func (i *Inbox) executeSideEffects(ctx context.Context, x *applying) error {
	forwards, err := i.forwards(ctx, x)
	if err != nil {
		return err
	}
	if err := i.Handlers.Received(ctx, x.tx, &x.Received); err != nil || !forwards {
		return err
	}
	if !i.mayForward(x) {
		i.notForwarded(ctx, x)
		return nil
	}
	return i.forward(ctx, x)
}
