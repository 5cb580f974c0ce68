package bench

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// lookEvery is the interval at which PostgreSQL is asked what its sessions wait for, while the
// clock runs.
const lookEvery = 100 * time.Millisecond

// clock measures one run of work.
type clock struct {
	began time.Time
	took  time.Duration
	known bool // whether the operating system reports processor time
	usage usage
	// waits counts the active sessions that were seen at each wait event, summed over all
	// looks (see lookEvery).
	waits    map[string]int
	watching chan struct{} // closed when watchWaits has returned
}

// timeWork runs the function work and measures it. If Config.Profile names a file, it also writes
// a CPU profile.
func (i *testbed) timeWork(ctx context.Context, work func(context.Context) error) (*clock, error) {
	if i.Profile != "" {
		if err := i.child.tellChild(wordProfile+i.Profile, wordDone); err != nil {
			return nil, err
		}
	}
	c := &clock{waits: map[string]int{}, watching: make(chan struct{})}
	runtime.GC() // so that the garbage of the preparation is not collected during the measurement
	before, known := i.readUsage()
	watched, enough := context.WithCancel(ctx)
	defer enough()
	go c.watchWaits(watched, i)
	c.began = time.Now()
	err := work(ctx)
	c.took = time.Since(c.began)
	after, _ := i.readUsage()
	c.known, c.usage = known, after.usageSince(before)
	enough()
	<-c.watching
	if i.Profile != "" && err == nil {
		err = i.child.tellChild(wordEnough, wordDone)
	}
	return c, err
}

// addRound adds the measurement of one more round to c.
func (c *clock) addRound(round *clock) {
	if c.waits == nil {
		c.waits = map[string]int{}
	}
	c.known = round.known
	c.took += round.took
	u, v := &c.usage, round.usage
	u.engine, u.postgres, u.client, u.busy = u.engine+v.engine, u.postgres+v.postgres, u.client+v.client, u.busy+v.busy
	for event, n := range round.waits {
		c.waits[event] += n
	}
}

// watchWaits counts the wait events of PostgreSQL's sessions until ctx ends.
func (c *clock) watchWaits(ctx context.Context, i *testbed) {
	defer close(c.watching)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		waits, err := i.measured.CountWaits(ctx)
		if err != nil { // the clock has stopped, or the query failed
			continue
		}
		for event, n := range waits {
			c.waits[event] += n
		}
	}
}

// newMeasurement returns a measurement of the timed run, to which the caller adds further figures.
// The processor time is divided by the number of operations.
func (c *clock) newMeasurement(name string, operations int) Measurement {
	m := Measurement{Name: name, Seconds: c.took.Seconds(), Counts: map[string]int{}, Limits: c.findLimits(runtime.NumCPU())}
	if c.known {
		m.CPU = c.usage.cpuTable(operations)
		m.Figures = append(m.Figures, newFigure("CPU of engine and PostgreSQL", float64((c.usage.engine+c.usage.postgres).Microseconds())/1000/float64(max(operations, 1)), "ms/operation"))
	}
	return m
}

// full is the least share of busy processors at which findLimits names the processors as the
// limit.
const full = 0.85

// noticed is the least share of the processors at which findLimits names other programs. A
// smaller share is the system's own work.
const noticed = 0.05

// share is the share of all processors that one kind of process used.
type share struct {
	who string
	of  float64
}

// findLimits says what limited the figures, in words that can follow "limited by".
func (c *clock) findLimits(cores int) string {
	if !c.known {
		return "what this system does not tell"
	}
	all := c.took.Seconds() * float64(cores)
	shares := []share{{"engine", c.usage.engine.Seconds() / all}, {"PostgreSQL", c.usage.postgres.Seconds() / all}, {"client", c.usage.client.Seconds() / all}}
	ours, most := 0.0, shares[0]
	for _, s := range shares {
		ours += s.of
	}
	others := min(max(0, c.usage.busy.Seconds()/all-ours), max(0, 1-ours))
	if others >= noticed {
		shares = append(shares, share{"other programs", others})
	}
	var words []string
	for _, s := range shares {
		words = append(words, s.who+" "+showPercent(s.of))
		if s.of > most.of {
			most = s
		}
	}
	by := strings.Join(words, ", ")
	if ours+others < full {
		return fmt.Sprintf("waiting: the processors were busy for %s (%s); %s", showPercent(ours+others), by, c.describeWaits())
	}
	return fmt.Sprintf("the processors, most of all %s: %s", most.who, by)
}

// describeWaits names the three wait events at which sessions were seen most often, the most
// frequent first.
func (c *clock) describeWaits() string {
	sum := 0
	for _, n := range c.waits {
		sum += n
	}
	if sum == 0 {
		return "no session of PostgreSQL was seen at work"
	}
	events := slices.SortedFunc(maps.Keys(c.waits), func(a, b string) int {
		if d := c.waits[b] - c.waits[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var words []string
	for _, e := range events[:min(3, len(events))] {
		words = append(words, fmt.Sprintf("%s %s", e, showPercent(float64(c.waits[e])/float64(sum))))
	}
	return "sessions of PostgreSQL at work were seen at " + strings.Join(words, ", ")
}

func showPercent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
