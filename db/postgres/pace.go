package postgres

import (
	"context"
	"time"
)

// Rest waits as long as the last batch of upkeep took. So upkeep uses at most half of the time,
// and leaves the other half to work for which users wait.
func Rest(ctx context.Context, took time.Duration) error {
	t := time.NewTimer(took)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return Fault("prune", ctx.Err())
	}
}
