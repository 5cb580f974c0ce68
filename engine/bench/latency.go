package bench

import (
	"slices"
	"time"
)

// percentileOf returns the latency that a share of all latencies does not exceed. The parameter
// share is a fraction, such as 0.99. percentileOf uses the nearest rank, so the result is always a
// measured latency. Without latencies the result is 0.
func percentileOf(latencies []time.Duration, share float64) time.Duration {
	if len(latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(latencies))
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// spreadFigures returns the figures that describe latencies.
func spreadFigures(of string, latencies []time.Duration) []Figure {
	return []Figure{
		newFigure(of+" p50", inMilliseconds(percentileOf(latencies, 0.50)), "ms"),
		newFigure(of+" p95", inMilliseconds(percentileOf(latencies, 0.95)), "ms"),
		newFigure(of+" p99", inMilliseconds(percentileOf(latencies, 0.99)), "ms"),
		newFigure(of+" max", inMilliseconds(percentileOf(latencies, 1)), "ms"),
	}
}
