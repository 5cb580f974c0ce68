package engine_test

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// stop sends the signals to PostgreSQL. After each signal it waits for 20 requests.
func (c *crash) stop(t *testing.T, pid int, signals ...syscall.Signal) {
	t.Helper()
	for _, s := range signals {
		if err := syscall.Kill(pid, s); err != nil {
			t.Error(err)
		}
		before := c.requests.Load()
		enginetest.Eventually(t, "requests are answered, or not", func() bool { return c.requests.Load() >= before+20 })
	}
}

// PostgreSQL's disk becomes full under load, and has space again later. Every activity that was
// accepted before, meanwhile or afterwards is stored once. The log says what to do. In the first
// round tables cannot grow. In the second PostgreSQL ends, because it has no space for the
// write-ahead log.
func TestNothingAcceptedIsLostWhenTheDiskIsFull(t *testing.T) {
	t.Parallel()
	disk := enginetest.NewDisk(t, 256)
	home := enginetest.MakeIn(t, disk.Dir, "LIGHTWEB_LOG_LEVEL=info")
	home.Start(t)
	c := newCrash(t, rand.New(rand.NewPCG(1, 0)), home)
	c.within, c.padding = crashActivities/4, 8<<10
	// without pauses the engine could accept all activities before the disk is full
	c.pauses = true
	full := func(meanwhile func()) func(func()) {
		return func(goOn func()) {
			before := c.again.Load()
			disk.Fill(t)
			goOn()
			enginetest.Eventually(t, "requests are refused", func() bool { meanwhile(); return c.again.Load() >= before+20 })
			disk.Free(t)
		}
	}
	c.round(t, 0, full(func() {}))
	c.round(t, 1, full(func() { _, _ = home.SQL(t, "lightweb").ExecContext(t.Context(), `SELECT pg_switch_wal()`) })) // fails when the disk is full
	if !home.Running() {
		t.Error("the engine ended when its disk was full")
	}
	if !strings.Contains(home.Log(), "make room on the disk of PostgreSQL") {
		t.Error("the log does not say that there must be room on the disk")
	}
	t.Logf("%d activities accepted, %d requests refused or unanswered and made again", c.accepted.Load(), c.again.Load())
}

// An engine that starts on a full disk says how much space it needs. Once there is space, it
// starts.
func TestServeOnAFullDiskSaysToMakeRoom(t *testing.T) {
	t.Parallel()
	disk := enginetest.NewDisk(t, 256)
	i := enginetest.MakeIn(t, disk.Dir)
	i.Start(t)
	i.Stop(t)
	disk.Fill(t)
	runAll(t, i, []command{{"serve", 69, "hint: make room for at least 64 MB in " + disk.Dir}})
	disk.Free(t)
	i.Start(t)
}

// PostgreSQL is stopped under load in each of its ways. The engine starts it again.
func TestNothingAcceptedIsLostWhenPostgreSQLIsStopped(t *testing.T) {
	t.Parallel()
	c := newCrash(t, rand.New(rand.NewPCG(2, 0)), enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"))
	c.within = crashActivities / 4
	ways := [][]syscall.Signal{
		{syscall.SIGINT},                  // a fast shutdown, as before a restart
		{syscall.SIGQUIT},                 // an immediate shutdown, with recovery afterwards
		{syscall.SIGTERM, syscall.SIGINT}, // a smart shutdown, which only refuses new connections, then a fast one
	}
	for n, signals := range ways {
		pid := c.home.Postmaster()
		c.round(t, n, func(func()) {
			c.stop(t, pid, signals...)
		})
		if now := c.home.Postmaster(); now == pid || now == 0 {
			t.Errorf("PostgreSQL is process %d after %d was sent %v, want a new one", now, pid, signals)
		}
	}
}

// hang stops every process of the instance's PostgreSQL until resume() is called. Connections stay
// open, but nothing answers.
func hang(t *testing.T, home *enginetest.Instance) (resume func()) {
	t.Helper()
	pids := []int{home.Postmaster()}
	rows, err := home.SQL(t, "lightweb").QueryContext(t.Context(), `SELECT pid FROM pg_stat_activity`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	signal := func(s syscall.Signal) {
		for _, pid := range pids {
			if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Errorf("%v to process %d: %v", s, pid, err)
			}
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// While PostgreSQL hangs, the engine answers that it is not ready. Afterwards it answers that it
// is ready.
func TestReadinessIsAnsweredWhilePostgreSQLHangs(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	resume := hang(t, home)
	if status := home.Ready(t); status != http.StatusServiceUnavailable {
		t.Errorf("ready: %d while PostgreSQL hangs, want 503", status)
	}
	resume()
	enginetest.Eventually(t, "the engine is ready again", func() bool { return home.Ready(t) == http.StatusOK })
}

// While PostgreSQL hangs, the metrics page leaves out the gauges that are read from PostgreSQL.
// Afterwards it shows them again.
func TestGaugesThatCannotBeReadAreAbsent(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	gauges := []string{"lightweb_reports_open ", "lightweb_inbox_journal_rows ", "lightweb_inbox_journal_oldest_seconds "}
	shown := func() (n int) {
		page := home.Metrics(t)
		for _, name := range gauges {
			if strings.Contains(page, "\n"+name) {
				n++
			}
		}
		return n
	}
	enginetest.Eventually(t, "all are shown", func() bool { return shown() == len(gauges) })
	resume := hang(t, home)
	enginetest.Eventually(t, "none is shown", func() bool { return shown() == 0 })
	resume()
	enginetest.Eventually(t, "all are shown again", func() bool { return shown() == len(gauges) })
}
