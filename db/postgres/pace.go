package postgres

import (
	"context"
	"time"
)

// Rest waits as long as a batch of upkeep took: upkeep takes half of the time at most, and leaves
// the other half to the work that somebody waits for.
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
