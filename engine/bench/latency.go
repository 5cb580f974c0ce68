package bench

import (
	"slices"
	"time"
)

// percentile returns the latency that share of all, such as 0.99, do not exceed: by nearest rank,
// so always one that was measured. 0 when there is none.
func percentile(latencies []time.Duration, share float64) time.Duration {
	if len(latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(latencies))
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// spread returns the figures that describe latencies.
func spread(of string, latencies []time.Duration) []Figure {
	return []Figure{
		figure(of+" p50", milliseconds(percentile(latencies, 0.50)), "ms"),
		figure(of+" p95", milliseconds(percentile(latencies, 0.95)), "ms"),
		figure(of+" p99", milliseconds(percentile(latencies, 0.99)), "ms"),
		figure(of+" max", milliseconds(percentile(latencies, 1)), "ms"),
	}
}
