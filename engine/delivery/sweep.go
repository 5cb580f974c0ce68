package delivery

import (
	"context"
	"time"
)

const (
	sweepRound = 15 * time.Second       // in which a sweep looks at every user, if they are few
	sweepPace  = 500 * time.Millisecond // between two users, if they are many
	firstPace  = 50 * time.Millisecond  // in the first round: a process that was killed may not have said who owes something
)

// sweepUsers gives every user a turn now and then, so slowly that it costs next to nothing: it
// finds what nobody was told of.
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

// sleep reports whether the time passed before ctx ended.
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
