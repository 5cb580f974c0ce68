package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// DispatchLoad describes public notes of a local user to followers on other servers.
type DispatchLoad struct {
	Followers int    `json:"followers"`
	Hosts     int    `json:"hosts"`
	Personal  bool   `json:"personal"` // the followers' servers have no shared inbox
	Posts     int    `json:"posts"`
	Key       string `json:"key"`   // the kind of key with which the engine signs: KeyRSA, or KeyEd25519, if the peers announce that they accept it
	Stall     int    `json:"stall"` // how many hosts accept requests and never answer
}

func (l DispatchLoad) name() string { return "dispatch" }

func (l DispatchLoad) check() error {
	return firstError(checkRange("hosts", l.Hosts, 1, 250), checkRange("followers", l.Followers, l.Hosts, 10_000), checkRange("posts", l.Posts, 1, 1000),
		checkRange("stall", l.Stall, 0, l.Hosts-1), checkKey(l.Key))
}

// Dispatch measures how fast a user's posts reach other servers.
func Dispatch(ctx context.Context, c Config, l DispatchLoad) (Report, error) {
	return runLoad(ctx, c, engineSetup{DrainTime: time.Second}, l) // do not wait at the end for hosts that stall
}

func (l DispatchLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, 1)
	if err != nil {
		return err
	}
	k, err := newKeys(l.Key)
	if err != nil {
		return err
	}
	peers := make([]*peer, l.Hosts)
	for n := range peers {
		if peers[n], err = newPeer(ctx, fmt.Sprintf("127.0.1.%d", n+1)); err != nil {
			return err
		}
		defer peers[n].close()
	}
	followers := make([]*actor, l.Followers)
	for n := range followers {
		p := peers[n%len(peers)]
		followers[n] = p.newActor(fmt.Sprintf("f%d", n+1), k, !l.Personal)
	}
	if err := i.makeFollowers(ctx, users[0], peers, followers); err != nil {
		return err
	}
	m, err := l.measurePosts(ctx, i, users[0], peers)
	if err == nil {
		r.Measured = append(r.Measured, m)
	}
	return err
}

// countInboxes returns the number of inboxes, on hosts that answer, to which a post is
// delivered.
func (l DispatchLoad) countInboxes() int {
	if !l.Personal {
		return l.Hosts - l.Stall
	}
	n := 0
	for k := range l.Followers {
		if k%l.Hosts >= l.Stall {
			n++
		}
	}
	return n
}

func (l DispatchLoad) measurePosts(ctx context.Context, i *testbed, u account, peers []*peer) (Measurement, error) {
	step, end := i.Progress("posting")
	defer end()
	if _, err := i.sendPost(ctx, u, peers[l.Stall:], l.countInboxes(), "the-first-note"); err != nil { // to warm up
		return Measurement{}, err
	}
	for _, p := range peers[:l.Stall] {
		p.stalled.Store(true)
	}
	var all []dispatched
	c, err := i.timeWork(ctx, func(ctx context.Context) error {
		for n := range l.Posts {
			d, err := i.sendPost(ctx, u, peers[l.Stall:], l.countInboxes(), fmt.Sprintf("note-%d-of-many", n+1))
			if err != nil {
				return err
			}
			all = append(all, d)
			step(n+1, l.Posts)
		}
		return nil
	})
	if err != nil {
		return Measurement{}, err
	}
	kind := "shared inboxes"
	if l.Personal {
		kind = "personal inboxes"
	}
	name := fmt.Sprintf("%d followers on %d hosts, %s, %s", l.Followers, l.Hosts, kind, l.Key)
	if l.Stall > 0 {
		name += fmt.Sprintf(", %d of them stalling", l.Stall)
	}
	m := c.newMeasurement(name, l.countInboxes()*len(all))
	m.Counts["posts"], m.Counts["inboxes"] = len(all), l.countInboxes()
	for _, d := range all {
		m.Counts["delivered"] += d.inboxes
		m.Counts["repeated"] += d.repeated
	}
	m.Figures = append(l.postFigures(all), m.Figures...)
	return m, nil
}

func (l DispatchLoad) postFigures(all []dispatched) []Figure {
	var answered, first, last []time.Duration
	for _, d := range all {
		answered, first, last = append(answered, d.answered), append(first, d.first), append(last, d.last)
	}
	reached := newFigure("all inboxes reached p50", inMilliseconds(percentileOf(last, 0.5)), "ms")
	rate := newFigure("delivered", float64(l.countInboxes())/percentileOf(last, 0.5).Seconds(), "deliveries/s")
	switch {
	case l.Stall > 0:
		reached = reached.atMost(200)
	case !l.Personal:
		reached = reached.atMost(50)
	case l.Key == KeyEd25519:
		rate = rate.atLeast(7000)
	default:
		reached, rate = reached.atMost(450), rate.atLeast(1100)
	}
	return []Figure{
		newFigure("first byte at a peer p50", inMilliseconds(percentileOf(first, 0.5)), "ms").atMost(10),
		newFigure("201 p50", inMilliseconds(percentileOf(answered, 0.5)), "ms"),
		reached,
		newFigure("all inboxes reached max", inMilliseconds(percentileOf(last, 1)), "ms"),
		rate,
	}
}

// dispatched has the times that one post took, measured from when the user's client sent it.
type dispatched struct {
	answered, first, last time.Duration
	inboxes, repeated     int
	body                  []byte
}

// sendPost posts a note and waits until it has arrived at the given number of inboxes of the
// peers.
func (i *testbed) sendPost(ctx context.Context, u account, peers []*peer, inboxes int, mark string) (d dispatched, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	arrived := make(chan arrival, 2*inboxes)
	for _, p := range peers {
		p.setListener(func(a arrival) {
			if bytes.Contains(a.body, []byte(mark)) {
				arrived <- a
			}
		})
		defer p.setListener(func(arrival) {})
	}
	request, err := i.dispatchAction(ctx, u, "CreateNote", map[string]any{"content": mark})
	if err != nil {
		return d, err
	}
	c, err := dialEngine(ctx, i.setup.Listen)
	if err != nil {
		return d, err
	}
	defer c.Close()
	began := time.Now()
	answered := c.beginRequest(request, http.StatusCreated)
	seen := map[string]bool{}
	for len(seen) < inboxes {
		select {
		case a := <-arrived:
			d.body = a.body
			if seen[a.inbox] {
				d.repeated++
				continue
			}
			seen[a.inbox] = true
			if took := a.at.Sub(began); d.first == 0 || took < d.first {
				d.first = took
			}
			d.last = max(d.last, a.at.Sub(began))
		case <-ctx.Done():
			return d, fault.New(fault.Busy, fmt.Sprintf("after %s the post has reached %d of %d inboxes", answerTime, len(seen), inboxes))
		}
	}
	a := <-answered
	d.inboxes, d.answered = len(seen), a.at.Sub(began)
	return d, a.err
}
