package bench

import (
	"context"
	"time"
)

// Dial calls dialEngine and then closes the connection.
func Dial(ctx context.Context, address string) error {
	c, err := dialEngine(ctx, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// Percentile is the function percentileOf, exported for tests.
func Percentile(latencies []time.Duration, share float64) time.Duration {
	return percentileOf(latencies, share)
}

// Limits returns the result of findLimits for a clock that ran one second on two cores.
func Limits(engine, postgres, client, busy time.Duration, waits map[string]int) string {
	c := clock{took: time.Second, known: true, usage: usage{engine, postgres, client, busy}, waits: waits}
	return c.findLimits(2)
}
