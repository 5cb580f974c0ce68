package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// FanoutLoad describes public notes of one remote actor. Each is sent once, to the shared inbox,
// and every local user receives it.
type FanoutLoad struct {
	Users       int   `json:"users"`
	Posts       int   `json:"posts"`
	Connections []int `json:"connections"` // database.max_connections, measured one after another
	Cold        bool  `json:"cold"`        // the engine is restarted before each post, so that it has no open connection
}

func (l FanoutLoad) name() string { return "fanout" }

func (l FanoutLoad) check() error {
	for _, n := range l.Connections {
		if err := checkRange("connections", n, 4, 10_000); err != nil {
			return err
		}
	}
	return firstError(checkRange("users", l.Users, 1, 10_000), checkRange("posts", l.Posts, 1, 1000), checkRange("connections", len(l.Connections), 1, 8))
}

// Fanout measures how fast one activity reaches all users, and how fast users are created.
func Fanout(ctx context.Context, c Config, l FanoutLoad) (Report, error) {
	most := 0
	for _, n := range l.Connections {
		most = max(most, n)
	}
	return runLoad(ctx, c, engineSetup{Connections: most + spare}, l) // a private server allows as many connections as it is started for
}

func (l FanoutLoad) run(ctx context.Context, i *testbed, r *Report) error {
	var users []account
	made, err := i.timeWork(ctx, func(ctx context.Context) (err error) {
		users, err = i.createUsers(ctx, l.Users)
		return err
	})
	if err != nil {
		return err
	}
	m := made.newMeasurement("making the users", l.Users)
	m.Counts["users"] = len(users)
	m.Figures = []Figure{newFigure("users made", float64(l.Users)/made.took.Seconds(), "users/s")} // the client creates them, including the keys
	r.Measured = append(r.Measured, m)
	p, a, err := i.makeAuthor(ctx, users, KeyRSA)
	if err != nil {
		return err
	}
	defer p.close()
	for _, n := range l.Connections {
		if m, err = l.measurePosts(ctx, i, users, a, n); err != nil {
			return err
		}
		r.Measured = append(r.Measured, m)
	}
	return nil
}

// spreading has the times until one post was answered, reached the first user and reached all
// users, measured from when it was sent.
type spreading struct{ answered, first, all time.Duration }

// measurePosts restarts the engine with the given number of connections, and sends posts to it.
func (l FanoutLoad) measurePosts(ctx context.Context, i *testbed, users []account, a *actor, connections int) (Measurement, error) {
	if err := i.restartEngine(ctx, connections); err != nil {
		return Measurement{}, err
	}
	name := fmt.Sprintf("%d users, %d connections", len(users), connections)
	rounds, posts := 1, l.Posts
	if l.Cold {
		name += ", cold"
		rounds, posts = l.Posts, 1
	} else if _, err := l.sendPosts(ctx, i, users, a, 1); err != nil { // to warm up
		return Measurement{}, err
	}
	before, err := i.countReceived(ctx, users, a.id)
	if err != nil {
		return Measurement{}, err
	}
	var whole clock
	var all []spreading
	step, end := i.Progress("posting, " + name)
	defer end()
	for range rounds {
		if l.Cold {
			if err := i.restartEngine(ctx, connections); err != nil {
				return Measurement{}, err
			}
		}
		c, err := i.timeWork(ctx, func(ctx context.Context) error {
			took, err := l.sendPosts(ctx, i, users, a, posts)
			all = append(all, took...)
			return err
		})
		if err != nil {
			return Measurement{}, err
		}
		whole.addRound(c)
		step(len(all), l.Posts)
	}
	m := whole.newMeasurement(name, len(users)*len(all))
	after, err := i.countReceived(ctx, users, a.id)
	if err != nil {
		return Measurement{}, err
	}
	m.Counts["sent"], m.Counts["stored"], m.Counts["shown"] = len(all), after.stored-before.stored, after.shown-before.shown
	m.Figures = append(l.postFigures(all, connections), m.Figures...)
	return m, nil
}

func (l FanoutLoad) postFigures(all []spreading, connections int) []Figure {
	pick := func(of func(spreading) time.Duration) []time.Duration {
		var d []time.Duration
		for _, s := range all {
			d = append(d, of(s))
		}
		return d
	}
	answered, done := pick(func(s spreading) time.Duration { return s.answered }), pick(func(s spreading) time.Duration { return s.all })
	within := 4000.0
	if connections >= l.Users && !l.Cold {
		within = 500
	}
	middle := percentileOf(done, 0.5)
	return []Figure{
		newFigure("202 p50", inMilliseconds(percentileOf(answered, 0.5)), "ms").atMost(5),
		newFigure("202 p95", inMilliseconds(percentileOf(answered, 0.95)), "ms"),
		newFigure("first user has it p50", inMilliseconds(percentileOf(pick(func(s spreading) time.Duration { return s.first }), 0.5)), "ms"),
		newFigure("all users have it p50", inMilliseconds(middle), "ms").atMost(within),
		newFigure("all users have it max", inMilliseconds(percentileOf(done, 1)), "ms"),
		newFigure("written", float64(l.Users)/middle.Seconds(), "users/s"),
	}
}

// sendPosts sends n notes, each after the note before it has reached all users.
func (l FanoutLoad) sendPosts(ctx context.Context, i *testbed, users []account, a *actor, n int) ([]spreading, error) {
	batch := time.Now().UnixNano()
	requests, err := prepareRequests(ctx, n, func(int, int) {}, func(k int) ([]byte, error) {
		_, _, body := a.newNote(fmt.Sprintf("%d-%d", batch, k))
		return a.signedPost(i.setup.PublicURL+"/inbox", body)
	})
	if err != nil {
		return nil, err
	}
	c, err := dialEngine(ctx, i.setup.Listen)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	metrics, err := i.readMeter(ctx)
	if err != nil {
		return nil, err
	}
	defer metrics.conn.Close()
	var took []spreading
	for _, request := range requests {
		s, err := reachUsers(ctx, c, metrics, request, len(users))
		if err != nil {
			return nil, err
		}
		took = append(took, s)
	}
	return took, nil
}

// glance is the interval at which the engine is asked how many users have a post. Each question
// takes processor time from the measured work.
const glance = 10 * time.Millisecond

// reachUsers sends one note and waits until all users have it.
func reachUsers(ctx context.Context, c *conn, m *meter, request []byte, users int) (s spreading, err error) {
	before, err := m.countHandled()
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	began := time.Now()
	answered := c.beginRequest(request, http.StatusAccepted)
	for reached := 0; reached < users; {
		if !pauseFor(ctx, glance) {
			return s, fault.New(fault.Busy, fmt.Sprintf("after %s %d of %d users have the post", answerTime, reached, users))
		}
		now, err := m.countHandled()
		if err != nil {
			return s, err
		}
		reached = now - before
		if reached > 0 && s.first == 0 {
			s.first = time.Since(began)
		}
	}
	s.all = time.Since(began)
	a := <-answered
	s.answered = a.at.Sub(began)
	return s, a.err
}

// meter reads the metrics of the engine.
type meter struct {
	conn    *conn
	request []byte
}

func (i *testbed) readMeter(ctx context.Context) (*meter, error) {
	c, err := dialEngine(ctx, i.setup.Admin)
	if err != nil {
		return nil, err
	}
	request, err := apiRequest(ctx, http.MethodGet, "http://"+i.setup.Admin+"/metrics", "", nil)
	return &meter{c, request}, err
}

// countHandled returns how many activities users' writers have committed since the engine
// started.
func (m *meter) countHandled() (int, error) {
	status, body, err := m.conn.sendRequest(m.request)
	if err != nil || status != http.StatusOK {
		return 0, fmt.Errorf("read the engine's metrics: status %d: %w", status, err)
	}
	sum := 0.0
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(name, "lightweb_inbox_activities_total{") {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, fmt.Errorf("read the engine's metrics: %w", err)
			}
			sum += n
		}
	}
	return int(sum), nil
}
