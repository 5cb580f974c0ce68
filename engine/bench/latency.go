package bench

import (
	"slices"
	"time"
)

// percentileOf returns the latency that share of all, such as 0.99, do not exceed: by nearest rank,
// so always one that was measured. 0 when there is none.
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
