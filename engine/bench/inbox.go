package bench

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// InboxLoad describes notes of one remote actor to the personal inboxes of users who follow that
// actor.
type InboxLoad struct {
	Users      int     `json:"users"`
	Activities int     `json:"activities"`
	Clients    int     `json:"clients"` // connections in parallel
	Rate       float64 `json:"rate"`    // activities per second; 0: as fast as they are answered
	Stored     int     `json:"stored"`  // activities that the first user has before the measurement
	Key        string  `json:"key"`     // KeyRSA or KeyEd25519
	Half       bool    `json:"half"`    // measure once more, at half the rate that the first measurement reached
}

func (l InboxLoad) name() string { return "inbox" }

func (l InboxLoad) check() error {
	return firstError(checkRange("users", l.Users, 1, 1000), checkRange("activities", l.Activities, l.Users, 200_000), checkRange("clients", l.Clients, 1, 512),
		checkRange("rate", int(l.Rate), 0, 100_000), checkRange("stored", l.Stored, 0, 5_000_000), checkKey(l.Key))
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Inbox measures how fast activities are accepted and handled, and the latency of each answer.
func Inbox(ctx context.Context, c Config, l InboxLoad) (Report, error) {
	return runLoad(ctx, c, engineSetup{}, l)
}

func (l InboxLoad) run(ctx context.Context, i *testbed, r *Report) error {
	users, err := i.createUsers(ctx, l.Users)
	if err != nil {
		return err
	}
	p, a, err := i.makeAuthor(ctx, users, l.Key)
	if err != nil {
		return err
	}
	defer p.close()
	if l.Stored > 0 {
		if err := i.fillInbox(ctx, users[0], a, l.Stored); err != nil {
			return err
		}
	}
	name := "as fast as answered"
	if l.Rate > 0 {
		name = fmt.Sprintf("at %.0f/s", l.Rate)
	}
	m, err := l.measureNotes(ctx, i, users, a, name, l.Rate)
	if err != nil {
		return err
	}
	r.Measured = append(r.Measured, m)
	if !l.Half {
		return nil
	}
	half := m.Figure(activityRate).Value / 2
	if m, err = l.measureNotes(ctx, i, users, a, fmt.Sprintf("at half that rate, %.0f/s", half), half); err == nil {
		r.Measured = append(r.Measured, m)
	}
	return err
}

const activityRate = "stored and handled"

// measureNotes sends the activities, and counts afterwards how many of them the users have.
func (l InboxLoad) measureNotes(ctx context.Context, i *testbed, users []account, a *actor, name string, rate float64) (Measurement, error) {
	requests, _, err := i.signNotes(ctx, users, a, l.Activities)
	if err != nil {
		return Measurement{}, err
	}
	before, err := i.countReceived(ctx, users, a.id)
	if err != nil {
		return Measurement{}, err
	}
	step, end := i.Progress("sending")
	defer end()
	var s *sent
	c, err := i.timeWork(ctx, func(ctx context.Context) (err error) {
		s, err = sendTraffic(ctx, traffic{address: i.setup.Listen, requests: requests, n: len(requests), clients: l.Clients, rate: rate, progress: step})
		return err
	})
	if err != nil {
		return Measurement{}, err
	}
	m := c.newMeasurement(name, len(requests))
	m.Counts["sent"] = len(requests)
	s.countAnswers(m.Counts, http.StatusAccepted)
	// With one recipient, status 202 says that the activity is committed and handled, so the
	// clock has stopped at the right moment.
	after, err := i.countReceived(ctx, users, a.id)
	if err != nil {
		return Measurement{}, err
	}
	m.Counts["stored"], m.Counts["shown"] = after.stored-before.stored, after.shown-before.shown
	reached := newFigure(activityRate, float64(m.Counts["stored"])/c.took.Seconds(), "activities/s")
	latencies := spreadFigures("202", s.latencies)
	if rate == 0 {
		reached = reached.atLeast(3000)
		for n := range m.Figures {
			m.Figures[n] = m.Figures[n].atMost(0.6)
		}
	} else {
		latencies[2] = latencies[2].atMost(50)
	}
	m.Figures = append(append([]Figure{reached}, m.Figures...), latencies...)
	return m, nil
}

// makeAuthor creates a remote actor, on a peer of its own, that all users follow.
func (i *testbed) makeAuthor(ctx context.Context, users []account, key string) (*peer, *actor, error) {
	k, err := newKeys(key)
	if err != nil {
		return nil, nil, err
	}
	p, err := newPeer(ctx, "127.0.0.1")
	if err != nil {
		return nil, nil, err
	}
	a := p.newActor("author", k, true)
	if err := i.makeFollowing(ctx, users, p, a); err != nil {
		p.close()
		return nil, nil, err
	}
	return p, a, nil
}

// signNotes makes n signed requests. Each has a new note, and goes to the inbox of the next
// user. It also returns the ids of the activities.
func (i *testbed) signNotes(ctx context.Context, users []account, a *actor, n int) (requests [][]byte, activities []vocab.ID, err error) {
	step, end := i.Progress("signing")
	defer end()
	batch := time.Now().UnixNano()
	activities = make([]vocab.ID, n)
	requests, err = prepareRequests(ctx, n, step, func(k int) ([]byte, error) {
		var body []byte
		activities[k], _, body = a.newNote(fmt.Sprintf("%d-%d", batch, k))
		return a.signedPost(users[k%len(users)].inbox(), body)
	})
	return requests, activities, err
}

// fillInbox gives a user n activities. The first is received like any other activity. For the
// others, the rows of the first are copied in the database.
func (i *testbed) fillInbox(ctx context.Context, u account, a *actor, n int) error {
	step, end := i.Progress("filling")
	defer end()
	activity, object, body := a.newNote("filled")
	request, err := a.signedPost(u.inbox(), body)
	if err != nil {
		return err
	}
	if _, err := i.sendOnce(ctx, request, http.StatusAccepted); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if err := i.measured.Multiply(ctx, u.name, activity, object, n, step); err != nil {
		return err
	}
	stored, _, err := i.measured.CountReceived(ctx, u.name, a.id)
	if err == nil && stored < n {
		err = fault.New(fault.Internal, fmt.Sprintf("the user has %d activities, not %d", stored, n))
	}
	return err
}
