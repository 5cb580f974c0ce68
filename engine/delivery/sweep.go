package delivery

import (
	"context"
	"time"
)

const (
	sweepRound = 15 * time.Second       // the time of a sweep over all users, if they are few
	sweepPace  = 500 * time.Millisecond // the pause between two users, if they are many
	// firstPace is the pause in the first round. It is shorter, because a process that was killed
	// may not have marked all users that are due.
	firstPace = 50 * time.Millisecond
)

// sweepUsers gives every user a turn from time to time, so slowly that it costs next to nothing.
// These turns find due deliveries that neither a mark (see soon) nor a message has announced.
func (d *Dispatcher) sweepUsers(ctx context.Context) {
	for pace := firstPace; ; pace = sweepPace {
		users, err := d.users.owingUsers(ctx)
		d.warn(ctx, "users could not be listed", err)
		pause := max(pace, sweepRound/time.Duration(max(len(users), 1)))
		for _, u := range users {
			d.requestTurn(u, d.Now())
			if !sleep(ctx, pause) {
				return
			}
		}
		if len(users) == 0 && !sleep(ctx, sweepRound) {
			return
		}
	}
}

// sleep waits for t, and reports whether the time passed before ctx ended.
func sleep(ctx context.Context, t time.Duration) bool {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
