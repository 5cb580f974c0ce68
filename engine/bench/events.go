package bench

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/event"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// EventsLoad describes notes to users that arrive while Redis does not answer. Their events reach
// the users' streams once Redis answers again.
type EventsLoad struct {
	Users   int `json:"users"`
	Events  int `json:"events"` // for each user
	Clients int `json:"clients"`
}

func (l EventsLoad) name() string { return "events" }

func (l EventsLoad) check() error {
	return firstError(checkRange("users", l.Users, 1, 1000), checkRange("events", l.Events, 1, 9000), checkRange("clients", l.Clients, 1, 512))
}

// Events measures how soon events that waited for Redis reach the streams of their users.
func Events(ctx context.Context, c Config, l EventsLoad) (Report, error) {
	return runLoad(ctx, c, engineSetup{}, l)
}

func (l EventsLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, l.Users)
	if err != nil {
		return err
	}
	p, a, err := i.makeAuthor(ctx, users, KeyRSA)
	if err != nil {
		return err
	}
	defer p.close()
	if err := i.beside.OpenRedis(ctx, false); err != nil {
		return err
	}
	requests, _, err := i.signNotes(ctx, users, a, l.Users*l.Events)
	if err != nil {
		return err
	}
	emitted := newEmission(users)
	if err := emitted.await(ctx, i, isAll); err != nil { // events from the creation of the users
		return err
	}
	if err := i.beside.Redis.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	resume := func() error { return i.beside.Redis.Signal(syscall.SIGCONT) }
	defer func() { _ = resume() }() // Redis must continue even if something fails before resume is called below
	if err := l.sendWaiting(ctx, i, requests); err != nil {
		return err
	}
	var flow time.Duration
	c, err := i.timeWork(ctx, func(ctx context.Context) error {
		began := time.Now()
		if err := resume(); err != nil {
			return err
		}
		if err := emitted.await(ctx, i, isMoved); err != nil {
			return err
		}
		flow = time.Since(began)
		return emitted.await(ctx, i, isAll)
	})
	if err != nil {
		return err
	}
	m := c.newMeasurement(fmt.Sprintf("%d events of each of %d users, that waited for Redis", l.Events, l.Users), len(requests))
	m.Counts["events"] = len(requests)
	m.Figures = append([]Figure{
		newFigure("every stream flows after", flow.Seconds(), "s").atMost(2),
		newFigure("all events emitted after", c.took.Seconds(), "s").atMost(10),
		newFigure("emitted", float64(len(requests))/c.took.Seconds(), "events/s"),
	}, m.Figures...)
	r.Measured = append(r.Measured, m)
	return nil
}

// sendWaiting sends the notes, and checks that each is accepted.
func (l EventsLoad) sendWaiting(ctx context.Context, i *testbed, requests [][]byte) error {
	step, end := i.Progress("sending")
	defer end()
	s, err := sendTraffic(ctx, traffic{address: i.setup.Listen, requests: requests, n: len(requests), clients: l.Clients, progress: step})
	if err != nil {
		return err
	}
	answers := map[string]int{}
	s.countAnswers(answers, http.StatusAccepted)
	if n := answers["errors"]; n > 0 {
		return fault.New(fault.Protocol, fmt.Sprintf("%d of %d notes were not taken", n, len(requests)))
	}
	return nil
}

// emission is the progress of users' streams.
type emission struct {
	users []vocab.Username
	from  []keyspace.ID // the last ids at the end of the previous await
}

func newEmission(users []account) *emission {
	e := &emission{users: make([]vocab.Username, len(users)), from: make([]keyspace.ID, len(users))}
	for n, u := range users {
		e.users[n] = u.name
	}
	return e
}

// These are conditions on a stream. The parameter from is the last id of the stream at the
// previous await, and last is the last id now. The parameter committed is the number of the user's
// last event in the database.
func isMoved(from, last keyspace.ID, _ int64) bool    { return from.Less(last) }
func isAll(_, last keyspace.ID, committed int64) bool { return int64(last.Seq) >= committed }

// await waits until every stream satisfies the condition.
func (e *emission) await(ctx context.Context, i *testbed, isMet func(from, last keyspace.ID, committed int64) bool) error {
	committed, err := e.readNumbers(ctx, i)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		last, err := i.beside.Keyspace.Events.LastIDs(ctx, e.users, event.Stream)
		n := 0
		for n < len(e.users) && err == nil && isMet(e.from[n], last[n], committed[n]) {
			n++
		}
		if n == len(e.users) {
			e.from = last
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fault.Wrap(fault.Busy, fmt.Sprintf("after %s the stream of %s is not complete", answerTime, e.users[n]), err)
		}
	}
}

// readNumbers returns the number of each user's last event in the database.
func (e *emission) readNumbers(ctx context.Context, i *testbed) ([]int64, error) {
	numbers := make([]int64, len(e.users))
	for n, u := range e.users {
		err := i.beside.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
			edge, err := tx.Events.FindEdge(ctx, math.MaxInt64)
			if edge != nil {
				numbers[n] = edge.Seq
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
