package cmd

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The Go runtime starts a collection when the garbage is as large as all live memory. A busy
// engine has little live memory and makes much garbage. With the runtime's own pace, a fifth of
// the engine's processor time went into a hundred collections a second.
const (
	// collectEvery is the time between two collections of a busy engine. It is shorter if the
	// garbage would exceed maxGarbage.
	collectEvery   = 200 * time.Millisecond
	maxGarbage     = 64 << 20 // bytes
	usualGCPercent = 100      // the runtime's own value
	minHeap        = 4 << 20  // bytes: with usualGCPercent the runtime lets each heap grow to this size
)

// paceCollections sets how much garbage the runtime keeps before it collects, until ctx ends. It
// does nothing if the operator has set GOGC.
func paceCollections(ctx context.Context, env environment) {
	if env.find("GOGC") != "" {
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(usualGCPercent))
	memory := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(memory)
	allocated, percent := memory[0].Value.Uint64(), usualGCPercent
	ticker := time.NewTicker(collectEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		metrics.Read(memory)
		now := memory[0].Value.Uint64()
		kept := memory[1].Value.Uint64() + memory[2].Value.Uint64() + memory[3].Value.Uint64()
		if p := gcPercent(kept, now-allocated); p != percent {
			percent = p
			debug.SetGCPercent(percent)
		}
		allocated = now
	}
}

// gcPercent returns the argument of debug.SetGCPercent, a multiple of 50, so that it changes
// seldom. The parameter kept is the size of the memory with which the runtime compares the
// garbage: live memory, stacks and globals. The parameter allocated is the number of bytes that
// were allocated within collectEvery.
func gcPercent(kept, allocated uint64) int {
	percent := min(allocated, maxGarbage) * 2 / max(kept, 1) * 50
	return int(min(max(percent, usualGCPercent), usualGCPercent*maxGarbage/minHeap))
}
