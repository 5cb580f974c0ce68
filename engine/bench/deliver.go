package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// The parts of the benchmark of deliveries.
const (
	PartReach   = "reach"   // how long a post takes to reach its followers' hosts
	PartBacklog = "backlog" // how many deliveries per second go out when many are owed
	PartStall   = "stall"   // how hosts that never answer slow down deliveries to others
	PartDead    = "dead"    // how very many deliveries that wait for a dead host slow down others
)

// DeliverParts are all parts of the benchmark.
var DeliverParts = []string{PartReach, PartBacklog, PartStall, PartDead}

// DeliverLoad describes the deliveries that a user owes to followers on other servers.
type DeliverLoad struct {
	Parts     []string `json:"parts"`
	Followers int      `json:"followers"`
	Hosts     int      `json:"hosts"`
	Posts     int      `json:"posts"`   // sent one after another
	Backlog   int      `json:"backlog"` // posts sent without waiting for their deliveries
	Stall     int      `json:"stall"`   // how many hosts accept requests and never answer
	Owed      int      `json:"owed"`    // deliveries that wait for a dead host
	Back      int      `json:"back"`    // deliveries to wait for once the host is back
	Parked    bool     `json:"parked"`  // the host has been dead so long that its deliveries are parked
}

func (l DeliverLoad) name() string { return "deliver" }

func (l DeliverLoad) check() error {
	for _, p := range l.Parts {
		if !slices.Contains(DeliverParts, p) {
			return fault.New(fault.Usage, fmt.Sprintf("--parts %.40q is none of %s", p, strings.Join(DeliverParts, ", ")))
		}
	}
	most := l.Hosts - 1
	if !slices.Contains(l.Parts, PartStall) {
		most = max(most, l.Stall) // without the part "stall" any value of Stall is valid
	}
	back := l.Owed
	if !l.Parked {
		back = max(1, back-putOff)
	}
	return firstError(checkRange("parts", len(l.Parts), 1, len(DeliverParts)), checkRange("hosts", l.Hosts, 2, 250), checkRange("followers", l.Followers, l.Hosts, 10_000),
		checkRange("posts", l.Posts, 2, 1000), checkRange("backlog", l.Backlog, 1, 1000), checkRange("stall", l.Stall, 1, most),
		checkRange("owed", l.Owed, 1, 1_000_000), checkRange("back", l.Back, 1, back))
}

// putOff is the greatest number of deliveries that the engine may have postponed for half an hour,
// after it found their host dead twice. When the host is back, the benchmark does not wait for
// that many deliveries.
const putOff = 1000

// Deliver measures how the posts of a user reach other servers, while all hosts answer and
// while some do not.
func Deliver(ctx context.Context, c Config, l DeliverLoad) (Report, error) {
	return runLoad(ctx, c, engineSetup{}, l)
}

func (l DeliverLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, 4)
	if err != nil {
		return err
	}
	crowds := make([]*crowd, len(users))
	for n, c := range []crowd{{key: KeyRSA, shared: true}, {key: KeyRSA}, {key: KeyEd25519}, {key: KeyRSA, shared: true, apart: true}} {
		c.user, crowds[n] = users[n], &c
		defer c.closePeers()
	}
	shared, personal, edwards, waiting := crowds[0], crowds[1], crowds[2], crowds[3]
	for _, part := range []struct {
		name    string
		crowd   *crowd
		measure func(context.Context, *testbed, *crowd) ([]Measurement, error)
	}{
		{PartReach, shared, l.measureReach},
		{PartReach, personal, l.measureReach},
		{PartBacklog, personal, l.measureBacklog},
		{PartBacklog, edwards, l.measureBacklog},
		{PartStall, shared, l.measureStall},
		{PartDead, waiting, l.measureDead},
	} {
		if !slices.Contains(l.Parts, part.name) {
			continue
		}
		if err := part.crowd.gatherFollowers(ctx, i, l); err != nil {
			return err
		}
		m, err := part.measure(ctx, i, part.crowd)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		r.Measured = append(r.Measured, m...)
	}
	return nil
}

// crowd is a user with followers on other servers.
type crowd struct {
	user    account
	key     string // the kind of key with which the engine signs deliveries to the followers
	shared  bool   // whether their servers have shared inboxes
	apart   bool   // whether the first server has no shared inbox, unlike the others
	peers   []*peer
	inboxes []int // number of inboxes, by peer
}

// gatherFollowers creates the followers, unless the crowd has them already.
func (c *crowd) gatherFollowers(ctx context.Context, i *testbed, l DeliverLoad) error {
	if c.peers != nil {
		return nil
	}
	k, err := newKeys(c.key)
	if err != nil {
		return err
	}
	c.inboxes = make([]int, l.Hosts)
	for range l.Hosts {
		p, err := newPeer(ctx, "127.0.0.1")
		if err != nil {
			return err
		}
		c.peers = append(c.peers, p)
	}
	followers := make([]*actor, l.Followers)
	for n := range followers {
		host := n % l.Hosts
		shared := c.shared && !(c.apart && host == 0)
		followers[n] = c.peers[host].newActor(fmt.Sprintf("f%d", n+1), k, shared)
		if c.inboxes[host]++; shared {
			c.inboxes[host] = 1
		}
	}
	return i.makeFollowers(ctx, c.user, c.peers, followers)
}

func (c *crowd) closePeers() {
	for _, p := range c.peers {
		p.close()
	}
}

// describeKind describes the crowd.
func (c *crowd) describeKind(l DeliverLoad) string {
	inboxes := "personal"
	if c.shared {
		inboxes = "shared"
	}
	return fmt.Sprintf("%d followers on %d hosts, %s inboxes, %s", l.Followers, l.Hosts, inboxes, c.key)
}

// sendPosts posts n notes, one after another. After each note it waits until all inboxes of
// c.peers[but:] have received the note. It calls the function between before each note, unless
// between is nil.
func (c *crowd) sendPosts(ctx context.Context, i *testbed, n, but int, mark string, between func(n int) error) (all []dispatched, err error) {
	inboxes := 0
	for _, k := range c.inboxes[but:] {
		inboxes += k
	}
	step, end := i.Progress(mark)
	defer end()
	for k := range n {
		if between != nil {
			if err := between(k); err != nil {
				return nil, err
			}
		}
		d, err := i.sendPost(ctx, c.user, c.peers[but:], inboxes, fmt.Sprintf("%s-%d-of-all", mark, k+1))
		if err != nil {
			return nil, err
		}
		all = append(all, d)
		step(k+1, n)
	}
	return all, nil
}

// awaitSettled waits until the user has at most a given number of open deliveries.
func (c *crowd) awaitSettled(ctx context.Context, i *testbed, most int) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		owed, err := i.beside.CountOwed(ctx, c.user.name)
		if err != nil || owed <= most {
			return err
		}
		if !pauseFor(ctx, 5*glance) {
			return fault.New(fault.Busy, fmt.Sprintf("after %s %d deliveries are not at an end", answerTime, owed))
		}
	}
}

// reachFigures returns the figures of posts that were sent one after another.
func reachFigures(all []dispatched, within float64) []Figure {
	var answered, first, last, after []time.Duration
	for _, d := range all {
		answered, first, last, after = append(answered, d.answered), append(first, d.first), append(last, d.last), append(after, d.last-d.answered)
	}
	return []Figure{
		newFigure("first byte at a peer p50", inMilliseconds(percentileOf(first, 0.5)), "ms").atMost(10),
		newFigure("201 p50", inMilliseconds(percentileOf(answered, 0.5)), "ms"),
		newFigure("all inboxes reached p50", inMilliseconds(percentileOf(last, 0.5)), "ms").atMost(within),
		newFigure("all inboxes reached after the 201 p50", inMilliseconds(percentileOf(after, 0.5)), "ms"),
		newFigure("all inboxes reached max", inMilliseconds(percentileOf(last, 1)), "ms"),
	}
}

// countDispatched returns a measurement of posts, to which the caller adds further figures.
func (c *clock) countDispatched(name string, all []dispatched) Measurement {
	delivered, repeated := 0, 0
	for _, d := range all {
		delivered, repeated = delivered+d.inboxes, repeated+d.repeated
	}
	m := c.newMeasurement(name, delivered)
	m.Counts["posts"], m.Counts["delivered"], m.Counts["repeated"] = len(all), delivered, repeated
	return m
}

// timePosts runs sendPosts and measures it.
func (c *crowd) timePosts(ctx context.Context, i *testbed, n, but int, mark string, between func(n int) error) (k *clock, all []dispatched, err error) {
	k, err = i.timeWork(ctx, func(ctx context.Context) (err error) {
		all, err = c.sendPosts(ctx, i, n, but, mark, between)
		return err
	})
	return k, all, err
}

func (l DeliverLoad) measureReach(ctx context.Context, i *testbed, c *crowd) ([]Measurement, error) {
	if _, err := c.sendPosts(ctx, i, 1, 0, "warm-up", nil); err != nil {
		return nil, err
	}
	k, all, err := c.timePosts(ctx, i, l.Posts, 0, "posting", nil)
	if err != nil {
		return nil, err
	}
	within := 450.0
	if c.shared {
		within = 50
	}
	m := k.countDispatched(c.describeKind(l), all)
	m.Figures = append(reachFigures(all, within), m.Figures...)
	return []Measurement{m}, c.awaitSettled(ctx, i, 0)
}

func (l DeliverLoad) measureStall(ctx context.Context, i *testbed, c *crowd) ([]Measurement, error) {
	if _, err := c.sendPosts(ctx, i, 1, 0, "before-stalling", nil); err != nil {
		return nil, err
	}
	for _, p := range c.peers[:l.Stall] {
		p.stalled.Store(true)
		defer func() {
			p.stalled.Store(false)
			p.hangUp()
		}()
	}
	k, all, err := c.timePosts(ctx, i, l.Posts, l.Stall, "stalling", nil)
	if err != nil {
		return nil, err
	}
	m := k.countDispatched(fmt.Sprintf("%s, %d of them stalling", c.describeKind(l), l.Stall), all)
	m.Figures = append(reachFigures(all, 200), m.Figures...)
	return []Measurement{m}, nil
}
