package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/engine/fault"
)

// While no user's database can be read, the page of metrics leaves out the metrics of owed
// deliveries. Old values would be wrong.
func TestWhatCannotBeCountedIsNotShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, status(500))
		b.m.add("Create", "p.example", 1, 0)
		b.run(t)
		shows := func(want int) {
			t.Helper()
			if n := testutil.CollectAndCount(collector{b.Dispatcher}, "lightweb_deliveries_open", "lightweb_deliveries_oldest_seconds"); n != want {
				t.Errorf("%d gauges, want %d", n, want)
			}
		}
		shows(4)
		b.m.breakWith(fault.New(fault.Unavailable, "down"))
		time.Sleep(time.Hour)
		synctest.Wait()
		shows(0)
		b.m.breakWith(nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		shows(4)
	})
}
