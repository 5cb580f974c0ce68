package bench

import (
	"context"
	"time"
)

// Dial calls dialEngine and closes the connection.
func Dial(ctx context.Context, address string) error {
	c, err := dialEngine(ctx, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// Percentile is percentile.
func Percentile(latencies []time.Duration, share float64) time.Duration {
	return percentileOf(latencies, share)
}

// Limits returns what findLimits says of a clock that ran for one second on two cores.
func Limits(engine, postgres, client, busy time.Duration, waits map[string]int) string {
	c := clock{took: time.Second, known: true, usage: usage{engine, postgres, client, busy}, waits: waits}
	return c.findLimits(2)
}
