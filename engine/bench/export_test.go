package bench

import (
	"context"
	"time"
)

// Dial is dial, without the connection.
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

// Limits is what a clock says that ran for a second of two cores.
func Limits(engine, postgres, client, busy time.Duration, waits map[string]int) string {
	c := clock{took: time.Second, known: true, usage: usage{engine, postgres, client, busy}, waits: waits}
	return c.findLimits(2)
}
