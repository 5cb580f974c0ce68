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
		name            string
		kept, allocated uint64
		want            int
	}{
		{"idle", 20 * MB, MB, 100},
		{"as much as is kept", 20 * MB, 20 * MB, 100},
		{"twice as much", 20 * MB, 40 * MB, 200},
		{"a little more than that", 20 * MB, 45 * MB, 200},
		{"the most garbage that may stand", 20 * MB, 1000 * MB, 300},
		{"little is kept, so that the smallest heap has the most garbage", MB, 1000 * MB, 1600},
		{"much is kept", 100 * MB, 1000 * MB, 100},
		{"no collection was made yet", 0, 1000 * MB, 1600},
	} {
		if got := gcPercent(tt.kept, tt.allocated); got != tt.want {
			t.Errorf("%s: %d percent, want %d", tt.name, got, tt.want)
		}
	}
}

// This test is not parallel, because all tests of the process share the garbage collector's
// setting.
func TestThePaceOfCollectionsFollowsWhatIsAllocated(t *testing.T) {
	before := percentNow()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			paceCollections(ctx, nil)
		}()
		synctest.Wait()
		runtime.GC() // so that the runtime measures the live memory
		for range 1 << 10 {
			garbage = make([]byte, 1<<20)
		}
		time.Sleep(collectEvery)
		synctest.Wait()
		if p := percentNow(); p <= usualGCPercent {
			t.Errorf("%d percent after a gigabyte of garbage", p)
		}
		time.Sleep(collectEvery)
		synctest.Wait()
		if p := percentNow(); p != usualGCPercent {
			t.Errorf("%d percent with nothing to do, want %d", p, usualGCPercent)
		}
		stop()
		<-ended
	})
	if p := percentNow(); p != before {
		t.Errorf("%d percent afterwards, want the %d of before", p, before)
	}
}

func TestTheOperatorsPaceOfCollectionsStays(t *testing.T) {
	before := percentNow()
	paceCollections(t.Context(), environment{"GOGC=50"}) // returns at once
	if p := percentNow(); p != before {
		t.Errorf("%d percent, want the %d of before", p, before)
	}
}

var garbage []byte // a package variable, so that the memory is allocated on the heap

func percentNow() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
