package cmd

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The Go runtime starts a collection when the garbage is as large as all live memory. A busy
// engine has little live memory and makes much garbage. With the runtime's own pace, a fifth of
// its processor time went into a hundred collections a second.
const (
	// collectionsPerSecond is how many collections a busy engine makes in a second. It makes more
	// if its garbage would exceed maxGarbage.
	collectionsPerSecond = 5
	maxGarbage           = 64 << 20 // bytes
	usualGCPercent       = 100      // the runtime's own value
)

// paceCollections sets every second how often the runtime collects garbage, until ctx ends. It
// does nothing if the operator has set GOGC.
func paceCollections(ctx context.Context, env environment) {
	if env.find("GOGC") != "" {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(usualGCPercent))
	memory := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(memory)
	allocated := memory[1].Value.Uint64()
	percent := usualGCPercent
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(memory)
		now := memory[1].Value.Uint64()
		if p := gcPercent(memory[0].Value.Uint64(), now-allocated); p != percent {
			percent = p
			debug.SetGCPercent(percent)
		}
		allocated = now
	}
}

// gcPercent returns the argument of debug.SetGCPercent, from the bytes that are live and those
// that were allocated in the last second. The result is never below usualGCPercent.
func gcPercent(live, allocated uint64) int {
	garbage := min(allocated/collectionsPerSecond, maxGarbage)
	if garbage <= live || live == 0 {
		return usualGCPercent
	}
	return int(garbage * 100 / live)
}
