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

// How long a host has been dead when its deliveries wait, and when they are parked.
const (
	waitsFor  = 5 * 24 * time.Hour
	parkedFor = 7*24*time.Hour + 12*time.Hour
)

// dead owes very many deliveries to one host that is dead, posts to the others, and lets the host
// come back.
func (l DeliverLoad) dead(ctx context.Context, i *testbed, c *crowd) ([]Measurement, error) {
	gone := c.peers[0]
	all, err := c.posts(ctx, i, 1, 0, "before-the-death", nil)
	if err != nil {
		return nil, err
	}
	var activity struct{ ID vocab.ID }
	if err := json.Unmarshal(all[0].body, &activity); err != nil {
		return nil, fault.Wrap(fault.Protocol, "what arrived is no activity", err)
	}
	k, all, err := c.timed(ctx, i, l.Posts, 0, "nothing-waits", nil)
	if err != nil {
		return nil, err
	}
	before := k.counted("nothing waits; "+c.kind(l), all)
	before.Figures = append(reached(all, 50), before.Figures...)
	if err := c.settled(ctx, i, 0); err != nil {
		return nil, err
	}
	if err := l.owe(ctx, i, c, gone, activity.ID); err != nil {
		return nil, err
	}
	during, err := l.waiting(ctx, i, c, gone)
	if err != nil {
		return nil, err
	}
	after, err := l.back(ctx, i, c, gone)
	return []Measurement{before, during, after}, err
}

// owe kills a host, and lets the engine find what it would owe to it after days.
func (l DeliverLoad) owe(ctx context.Context, i *testbed, c *crowd, gone *peer, activity vocab.ID) error {
	if err := i.stop(ctx); err != nil {
		return err
	}
	gone.die()
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
	if err := i.beside.DB.Owe(ctx, c.user.name, activity, h, l.Owed, i.beside.Now(), step); err != nil {
		return err
	}
	return i.start(ctx)
}

// waiting posts while all that waits. Twice an attempt finds out whether the host is back: when the
// engine starts, and when half of the posts are out, for which it is asked.
func (l DeliverLoad) waiting(ctx context.Context, i *testbed, c *crowd, gone *peer) (Measurement, error) {
	if err := i.probed(ctx, gone, 1); err != nil {
		return Measurement{}, err
	}
	if _, err := c.posts(ctx, i, 1, 1, "while-it-starts", nil); err != nil { // to warm up
		return Measurement{}, err
	}
	k, all, err := c.timed(ctx, i, l.Posts, 1, "many-wait", func(n int) error {
		if n != l.Posts/2 {
			return nil
		}
		if _, err := i.tasks.Hosts.Probe(ctx, gone.host()); err != nil {
			return err
		}
		return i.probed(ctx, gone, 2)
	})
	if err != nil {
		return Measurement{}, err
	}
	what := "wait"
	if l.Parked {
		what = "are parked"
	}
	m := k.counted(fmt.Sprintf("%d deliveries %s for one dead host; %s, to the others", l.Owed, what, c.kind(l)), all)
	m.Counts["attempts_while_dead"] = int(gone.knocked.Load())
	if err := c.settled(ctx, i, l.Owed+(l.Posts+1)*l.Followers/l.Hosts); err != nil { // what the others took is recorded a moment later
		return Measurement{}, err
	}
	if m.Counts["owed"], err = i.countOwed(ctx, c.user); err != nil {
		return Measurement{}, err
	}
	m.Figures = append(reached(all, 50), m.Figures...)
	return m, nil
}

// probed waits until so many attempts have found a host dead, and the engine leaves it alone.
func (i *testbed) probed(ctx context.Context, gone *peer, n int64) error {
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
		if !pause(ctx, 5*glance) {
			return fault.New(fault.Busy, fmt.Sprintf("after %s a dead host was tried %d times, not %d, and is %s", answerTime, gone.knocked.Load(), n, h.State))
		}
	}
}

// back lets the host take deliveries again, as the operator tells the engine, and waits until many
// have arrived.
func (l DeliverLoad) back(ctx context.Context, i *testbed, c *crowd, gone *peer) (Measurement, error) {
	owed, err := i.countOwed(ctx, c.user)
	if err != nil {
		return Measurement{}, err
	}
	f := newFlood(`"id":"http`, l.Back)
	gone.hear(f.take)
	defer gone.hear(func(arrival) {})
	var began time.Time
	k, err := i.time(ctx, func(ctx context.Context) error {
		gone.dead.Store(false)
		if _, err := i.tasks.Hosts.Resume(ctx, gone.host()); err != nil {
			return err
		}
		began = time.Now()
		return f.wait(ctx)
	})
	if err != nil {
		return Measurement{}, err
	}
	m := k.measurement(fmt.Sprintf("the host is back, and takes %d", l.Back), l.Back)
	f.mu.Lock()
	defer f.mu.Unlock()
	m.Counts["delivered"], m.Counts["repeated"], m.Counts["owed"] = l.Back, f.repeated, owed
	flow := f.last.Sub(f.first).Seconds()
	m.Figures = append([]Figure{figure("first delivery since the operator said so", milliseconds(f.first.Sub(began)), "ms"),
		figure("delivered", float64(l.Back)/max(flow, 0.001), "deliveries/s"),
		figure(fmt.Sprintf("all %d would take", owed), float64(owed)*flow/float64(l.Back), "s")}, m.Figures...)
	return m, nil
}
