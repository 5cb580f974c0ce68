package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The times for which a host has been dead in the two variants of the measurement. After the time
// waitsFor its deliveries still wait for the next attempt. After parkedFor they are parked, which
// means that they wait until the host answers again.
const (
	waitsFor  = 5 * 24 * time.Hour
	parkedFor = 7*24*time.Hour + 12*time.Hour
)

// measureDead makes three measurements: of posts before a host dies, of posts while very many
// deliveries wait for the dead host, and of these deliveries after the host is back.
func (l DeliverLoad) measureDead(ctx context.Context, i *testbed, c *crowd) ([]Measurement, error) {
	gone := c.peers[0]
	all, err := c.sendPosts(ctx, i, 1, 0, "before-the-death", nil)
	if err != nil {
		return nil, err
	}
	var activity struct{ ID vocab.ID }
	if err := json.Unmarshal(all[0].body, &activity); err != nil {
		return nil, fault.Wrap(fault.Protocol, "the peer got a body that is no activity", err)
	}
	k, all, err := c.timePosts(ctx, i, l.Posts, 0, "nothing-waits", nil)
	if err != nil {
		return nil, err
	}
	before := k.countDispatched("nothing waits; "+c.describeKind(l), all)
	before.Figures = append(reachFigures(all, 50), before.Figures...)
	if err := c.awaitSettled(ctx, i, 0); err != nil {
		return nil, err
	}
	if err := l.oweDeliveries(ctx, i, c, gone, activity.ID); err != nil {
		return nil, err
	}
	during, err := l.measureWaiting(ctx, i, c, gone)
	if err != nil {
		return nil, err
	}
	after, err := l.measureBack(ctx, i, c, gone)
	return []Measurement{before, during, after}, err
}

// oweDeliveries makes a host dead. While the engine is stopped, it writes the rows that the
// engine would have after days of failed deliveries to that host.
func (l DeliverLoad) oweDeliveries(ctx context.Context, i *testbed, c *crowd, gone *peer, activity vocab.ID) error {
	if err := i.stopEngine(ctx); err != nil {
		return err
	}
	gone.stopAnswering()
	now := time.Now()
	since := now.Add(-waitsFor)
	if l.Parked {
		since = now.Add(-parkedFor)
	}
	failed := now.Add(-time.Minute)
	h := instance.Host{Host: gone.host(), Failures: 100, FailingSince: &since, FailedAt: &failed, Failure: "connection refused", ClosedUntil: &now, Probes: 6}
	if l.Parked {
		h.InactiveAt = &failed
	}
	step, end := i.Progress("owing")
	defer end()
	if err := i.measured.Owe(ctx, c.user.name, activity, h, l.Owed, i.beside.Now(), step); err != nil {
		return err
	}
	return i.startEngine(ctx)
}

// measureWaiting sends posts while the owed deliveries wait. Two attempts test whether the host
// is back: one when the engine starts, and one that the operator asks for when half of the posts
// are sent.
func (l DeliverLoad) measureWaiting(ctx context.Context, i *testbed, c *crowd, gone *peer) (Measurement, error) {
	if err := i.awaitProbe(ctx, gone, 1); err != nil {
		return Measurement{}, err
	}
	if _, err := c.sendPosts(ctx, i, 1, 1, "while-it-starts", nil); err != nil { // to warm up
		return Measurement{}, err
	}
	k, all, err := c.timePosts(ctx, i, l.Posts, 1, "many-wait", func(n int) error {
		if n != l.Posts/2 {
			return nil
		}
		if _, err := i.tasks.Hosts.Probe(ctx, gone.host()); err != nil {
			return err
		}
		return i.awaitProbe(ctx, gone, 2)
	})
	if err != nil {
		return Measurement{}, err
	}
	what := "wait"
	if l.Parked {
		what = "are parked"
	}
	m := k.countDispatched(fmt.Sprintf("%d deliveries %s for one dead host; %s, to the others", l.Owed, what, c.describeKind(l)), all)
	m.Counts["attempts_while_dead"] = int(gone.knocked.Load())
	if err := c.awaitSettled(ctx, i, l.Owed+(l.Posts+1)*l.Followers/l.Hosts); err != nil { // the successful deliveries to the other hosts are recorded a moment later
		return Measurement{}, err
	}
	if m.Counts["owed"], err = i.beside.CountOwed(ctx, c.user.name); err != nil {
		return Measurement{}, err
	}
	m.Figures = append(reachFigures(all, 50), m.Figures...)
	return m, nil
}

// awaitProbe waits until n attempts have found a host dead, and the engine has postponed the next
// attempt.
func (i *testbed) awaitProbe(ctx context.Context, gone *peer, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		h, err := i.tasks.Hosts.Find(ctx, gone.host())
		if err != nil {
			return err
		}
		if gone.knocked.Load() >= n && h.NextAttempt != nil && h.NextAttempt.After(time.Now()) {
			return nil
		}
		if !pauseFor(ctx, 5*glance) {
			return fault.New(fault.Busy, fmt.Sprintf("after %s a dead host was tried %d times, not %d, and is %s", answerTime, gone.knocked.Load(), n, h.State))
		}
	}
}

// measureBack brings the host back and resumes it as an operator does. It waits until l.Back
// deliveries have arrived.
func (l DeliverLoad) measureBack(ctx context.Context, i *testbed, c *crowd, gone *peer) (Measurement, error) {
	owed, err := i.beside.CountOwed(ctx, c.user.name)
	if err != nil {
		return Measurement{}, err
	}
	f := newFlood(`"id":"http`, l.Back)
	gone.setListener(f.takeArrival)
	defer gone.setListener(func(arrival) {})
	var began time.Time
	k, err := i.timeWork(ctx, func(ctx context.Context) error {
		gone.dead.Store(false)
		if _, err := i.tasks.Hosts.Resume(ctx, gone.host()); err != nil {
			return err
		}
		began = time.Now()
		return f.awaitNotes(ctx)
	})
	if err != nil {
		return Measurement{}, err
	}
	m := k.newMeasurement(fmt.Sprintf("the host is back, and takes %d", l.Back), l.Back)
	f.mu.Lock()
	defer f.mu.Unlock()
	m.Counts["delivered"], m.Counts["repeated"], m.Counts["owed"] = l.Back, f.repeated, owed
	flow := f.last.Sub(f.first).Seconds()
	m.Figures = append([]Figure{newFigure("first delivery since the operator said so", inMilliseconds(f.first.Sub(began)), "ms"),
		newFigure("delivered", float64(l.Back)/max(flow, 0.001), "deliveries/s"),
		newFigure(fmt.Sprintf("all %d would take", owed), float64(owed)*flow/float64(l.Back), "s")}, m.Figures...)
	return m, nil
}
