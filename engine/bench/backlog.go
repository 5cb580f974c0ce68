package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// flood counts the deliveries that arrive at peers: each post once for each inbox.
type flood struct {
	mark     []byte // only bodies with this mark count; the text after it, up to a space or quote, names the post
	enough   int
	mu       sync.Mutex
	seen     map[string]bool
	repeated int
	first    time.Time
	last     time.Time
	full     chan struct{} // closed when enough have arrived
}

func newFlood(mark string, enough int) *flood {
	return &flood{mark: []byte(mark), enough: enough, seen: make(map[string]bool, enough), full: make(chan struct{})}
}

// takeArrival counts an arrival. It is set as the listener of a peer.
func (f *flood) takeArrival(a arrival) {
	at := bytes.Index(a.body, f.mark)
	if at < 0 {
		return
	}
	post := a.body[at+len(f.mark):]
	key := a.inbox + " " + string(post[:max(0, bytes.IndexAny(post, ` "`))])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen[key] {
		f.repeated++
		return
	}
	f.seen[key] = true
	if f.first.IsZero() {
		f.first = a.at
	}
	if len(f.seen) <= f.enough {
		f.last = a.at
	}
	if len(f.seen) == f.enough {
		close(f.full)
	}
}

// awaitNotes waits until enough deliveries have arrived.
func (f *flood) awaitNotes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*answerTime)
	defer cancel()
	select {
	case <-f.full:
		return nil
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		return fault.Wrap(fault.Busy, fmt.Sprintf("%d of %d deliveries arrived", len(f.seen), f.enough), ctx.Err())
	}
}

// measureBacklog dispatches many posts over four connections. Each post is sent as soon as the
// previous answer on its connection has arrived. Then measureBacklog waits until all posts have
// arrived at their inboxes and no delivery is open.
func (l DeliverLoad) measureBacklog(ctx context.Context, i *testbed, c *crowd) ([]Measurement, error) {
	if _, err := c.sendPosts(ctx, i, 1, 0, "before-the-backlog", nil); err != nil {
		return nil, err
	}
	if err := c.awaitSettled(ctx, i, 0); err != nil {
		return nil, err
	}
	each := 0
	for _, k := range c.inboxes {
		each += k
	}
	all := l.Backlog * each
	f := newFlood("owed-", all)
	for _, p := range c.peers {
		p.setListener(f.takeArrival)
		defer p.setListener(func(arrival) {})
	}
	requests, err := prepareRequests(ctx, l.Backlog, func(int, int) {}, func(n int) ([]byte, error) {
		return i.dispatchAction(ctx, c.user, "CreateNote", map[string]any{"content": fmt.Sprintf("owed-%d ", n+1)})
	})
	if err != nil {
		return nil, err
	}
	once, body, err := c.timeSignature()
	if err != nil {
		return nil, err
	}
	var began, answered time.Time
	k, err := i.timeWork(ctx, func(ctx context.Context) error {
		began = time.Now()
		s, err := sendTraffic(ctx, traffic{address: i.setup.Listen, requests: requests, n: len(requests), clients: 4})
		if err != nil {
			return err
		}
		if answered = time.Now(); s.statuses[http.StatusCreated] != len(requests) {
			return fault.New(fault.Protocol, fmt.Sprintf("the engine answered %v: %.200s", s.statuses, s.body))
		}
		if err := f.awaitNotes(ctx); err != nil {
			return err
		}
		return c.awaitSettled(ctx, i, 0)
	})
	if err != nil {
		return nil, err
	}
	m := k.newMeasurement(fmt.Sprintf("%d posts at once to %s", l.Backlog, c.describeKind(l)), all)
	m.Counts["posts"], m.Counts["delivered"], m.Counts["repeated"], m.Counts["signed_bytes"] = l.Backlog, len(f.seen), f.repeated, body
	rate := newFigure("delivered", float64(all)/f.last.Sub(began).Seconds(), "deliveries/s").atLeast(1100)
	if c.key == KeyEd25519 {
		rate = rate.atLeast(7000)
	}
	m.Figures = append([]Figure{rate, newFigure("all dispatched", inMilliseconds(answered.Sub(began)), "ms"), newFigure("all arrived", inMilliseconds(f.last.Sub(began)), "ms"),
		newFigure("settled after the last arrival", inMilliseconds(k.began.Add(k.took).Sub(f.last)), "ms")}, m.Figures...)
	m.Figures = append(m.Figures, newFigure("one signature", inMilliseconds(once), "ms"))
	if k.known && k.usage.engine > 0 { // the first attempt of every delivery succeeds, so each is signed once; a few take less than the clock shows
		m.Figures = append(m.Figures, newFigure("signing, of the engine's time", 100*once.Seconds()*float64(all+f.repeated)/k.usage.engine.Seconds(), "%"))
	}
	return []Measurement{m}, nil
}

// timeSignature measures the processor time of one signature as the engine makes it: digest,
// signature base and key operation. Nothing else runs meanwhile. If the system does not report
// processor time, it measures the elapsed time. It also returns the length of the body.
func (c *crowd) timeSignature() (time.Duration, int, error) {
	k, err := newKeys(c.key)
	if err != nil {
		return 0, 0, err
	}
	a := &actor{c.user.id, k}
	_, _, body := a.newNote("signed")
	n := 200
	if c.key == KeyEd25519 {
		n = 4000
	}
	began := time.Now()
	before, known := processTime(os.Getpid())
	for range n {
		if _, err := a.signRequest(c.user.inbox(), body); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	if after, _ := processTime(os.Getpid()); known {
		took = after - before
	}
	return took / time.Duration(n), len(body), nil
}
