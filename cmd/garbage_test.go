package cmd

import (
	"context"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

func TestGarbageIsCollectedLessOftenWhileTheEngineIsBusy(t *testing.T) {
	const MB = 1 << 20
	for _, tt := range []struct {
		name                     string
		live, allocated, garbage uint64
	}{
		{"idle", 20 * MB, MB, 20 * MB},
		{"five collections a second", 20 * MB, 100 * MB, 20 * MB},
		{"more than these", 20 * MB, 200 * MB, 40 * MB},
		{"as much garbage as is allowed", 20 * MB, 1000 * MB, 64 * MB},
		{"little live memory", MB, 1000 * MB, 64 * MB},
		{"much live memory", 100 * MB, 1000 * MB, 100 * MB},
		{"no collection was made yet", 0, 1000 * MB, 0},
	} {
		if got, want := gcPercent(tt.live, tt.allocated), max(100, int(tt.garbage*100/max(tt.live, 1))); got != want {
			t.Errorf("%s: %d percent, want %d", tt.name, got, want)
		}
	}
}

// Not parallel: the setting is that of the process.
func TestThePaceOfCollectionsFollowsTheLastSecond(t *testing.T) {
	before := percentNow()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			paceCollections(ctx, nil)
		}()
		synctest.Wait()
		runtime.GC() // so that the live memory is known
		for range 1 << 10 {
			garbage = make([]byte, 1<<20)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if p := percentNow(); p <= usualGCPercent {
			t.Errorf("%d percent after a second with a gigabyte of garbage", p)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if p := percentNow(); p != usualGCPercent {
			t.Errorf("%d percent after an idle second, want %d", p, usualGCPercent)
		}
		stop()
		<-ended
	})
	if p := percentNow(); p != before {
		t.Errorf("%d percent afterwards, want the %d of before", p, before)
	}
}

var garbage []byte // escapes

func percentNow() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
