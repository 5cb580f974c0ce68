package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
)

// hold keeps alice's writer from committing until release() is called.
func hold(t *testing.T, s *peertest.Scene) (release func()) {
	t.Helper()
	return dbtest.Hold(t, s.DB(t, s.Alice), `LOCK TABLE seen IN ACCESS EXCLUSIVE MODE`)
}

// waiting waits until n activities are queued or being committed.
func waiting(t *testing.T, s *peertest.Scene, n int) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer limit.Stop()
	for s.Inbox.Waiting() < n {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%d activities wait, want %d", s.Inbox.Waiting(), n)
		}
	}
}

// queue sends bodies one after the other while hold keeps the writer from committing. It returns a
// channel for each answer.
func queue(t *testing.T, s *peertest.Scene, bodies ...string) (answers []chan error) {
	t.Helper()
	for n, body := range bodies {
		answer := make(chan error, 1)
		r := s.Request("p:/carol", mine, body)
		go func() { answer <- s.Receive(r, mine, body) }()
		answers = append(answers, answer)
		waiting(t, s, n+1)
	}
	return answers
}

func listens(n int) (bodies []string) {
	for i := range n {
		bodies = append(bodies, fmt.Sprintf(`{"id":"p:/listens/%02d","type":"Listen","actor":"p:/carol"}`, i))
	}
	return bodies
}

// events returns the events that alice got, in order.
func events(t *testing.T, s *peertest.Scene) []string {
	t.Helper()
	return slices.DeleteFunc(s.Rows(), func(line string) bool { return !strings.HasPrefix(line, "event ") })
}

func TestWhatWaitsIsCommittedTogetherAndInOrder(t *testing.T) {
	s := newScene(t)
	release := hold(t, s)
	answers := queue(t, s, listens(40)...)
	release()
	for n, a := range answers {
		if err := <-a; err != nil {
			t.Errorf("activity %d: %v", n, err)
		}
	}
	told := events(t, s)
	if len(told) != 40 || !slices.IsSorted(told) {
		t.Errorf("events:\n%s\nwant 40 in the order of sending", strings.Join(told, "\n"))
	}
	// The first transaction, which hold held up, applied the first activities. The next
	// transaction applied all others.
	if n := s.Column(t, s.Alice, `SELECT DISTINCT xmin::text FROM seen`); len(n) > 2 {
		t.Errorf("%d transactions, want at most 2", len(n))
	}
}

func TestRepeatsWithinABatch(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	release := hold(t, s)
	once := listens(1)[0]
	twin := strings.Replace(once, "p:/listens", "HTTP"+strings.TrimPrefix(s.Long("p:/listens"), "http"), 1) // the same activity with another spelling of its id
	like := `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`
	undo := `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","object":` + like + `}`
	made := s.Changes(func() {
		answers := queue(t, s, listens(2)[1], once, once, twin, undo, like)
		release()
		for _, a := range answers {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
	})
	want := []string{
		"+ activity inbound Listen p:/listens/00",
		"+ activity inbound Listen p:/listens/01",
		"+ event listen.received p:/listens/01 by stranger p:/carol",
		"+ event listen.received p:/listens/00 by stranger p:/carol"}
	if !slices.Equal(made, want) {
		t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(made, "\n"), strings.Join(want, "\n"))
	}
}

func TestWhatIsIgnoredFromOneInboxMayBeMeantForTheOther(t *testing.T) {
	s := newScene(t)
	release := hold(t, s)
	first := queue(t, s, listens(2)[1]) // these are in the transaction that hold holds up
	const body = `{"id":"p:/listens/00","type":"Listen","actor":"p:/carol","cc":"us:/alice/followers"}`
	answers := make(chan error, 2)
	for n, to := range []string{shared, mine} {
		r := s.Request("p:/carol", to, body)
		go func() { answers <- s.Receive(r, to, body) }()
		waiting(t, s, n+2)
	}
	made := s.Changes(func() {
		release()
		for _, a := range []chan error{first[0], answers, answers} {
			if err := <-a; err != nil {
				t.Error(err)
			}
		}
	})
	if !slices.Contains(made, "+ activity inbound Listen p:/listens/00") {
		t.Errorf("changes:\n%s\nwant what came to her own inbox", strings.Join(made, "\n"))
	}
}

// broken registers handlers that fail as a bug in the engine would.
func broken(d *inbox.Deps) {
	d.Handlers.Register(handler.Key{Type: "Explode"}, handler.Handler{Received: func(ctx context.Context, tx *user.Tx, r *handler.Received) (handler.Effects, error) {
		return handler.Effects{}, tx.Activities.Add(ctx, user.Activity{URI: r.Activity.ID + "/x", Direction: "sideways", Raw: r.Activity.Raw})
	}})
	d.Handlers.Register(handler.Key{Type: "Panic"}, handler.Handler{Received: func(context.Context, *user.Tx, *handler.Received) (handler.Effects, error) {
		panic("a handler that nobody tested")
	}})
}

func TestPoisonIsSetAsideAndHoldsUpNobody(t *testing.T) {
	for _, kind := range []string{"Explode", "Panic"} {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t, broken)
			release := hold(t, s)
			bodies := listens(20)
			poison := fmt.Sprintf(`{"id":"p:/poison","type":%q,"actor":"p:/carol"}`, kind)
			answers := queue(t, s, slices.Insert(bodies, 11, poison)...)
			release()
			for n, a := range answers {
				if err := <-a; err != nil {
					t.Errorf("activity %d: %v", n, err)
				}
			}
			if told := events(t, s); len(told) != 20 || !slices.IsSorted(told) {
				t.Errorf("events:\n%s\nwant the other 20 in the order of sending", strings.Join(told, "\n"))
			}
			if aside := s.Column(t, s.Alice, `SELECT uri || ' ' || convert_from(raw, 'UTF8') FROM poison WHERE reason <> ''`); len(aside) != 1 || aside[0] != s.Long("p:/poison "+poison) {
				t.Errorf("set aside: %q, want the one", aside)
			}
			expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, poison) })
		})
	}
}

func TestWhatCannotBeSetAsideComesAgain(t *testing.T) {
	s := newScene(t, broken)
	if _, err := s.DB(t, s.Alice).Exec(`ALTER TABLE poison ADD CHECK (uri = '')`); err != nil {
		t.Fatal(err)
	}
	expect(t, s, nil, fault.Internal, func() error {
		return s.Send("p:/carol", mine, `{"id":"p:/poison","type":"Explode","actor":"p:/carol"}`)
	})
}

// The writer runs a transaction again that failed with a serialization error. The effects of its
// first run do not count.
func TestATransactionThatLostIsRunAgain(t *testing.T) {
	metrics := prometheus.NewRegistry()
	s := newScene(t, func(d *inbox.Deps) { d.Metrics = metrics })
	if _, err := s.DB(t, s.Alice).Exec(`CREATE SEQUENCE tries;
		CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('tries') < 3 THEN RAISE EXCEPTION 'lost' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER lose BEFORE INSERT ON event_outbox FOR EACH ROW WHEN (NEW.type = 'relationship.changed') EXECUTE FUNCTION lose()`); err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/carol", mine, follow)
	if n := len(events(t, s)); n != 3 {
		t.Errorf("%d events, want accept.sent, follow.received and relationship.changed", n)
	}
	if n := s.Column(t, s.Alice, `SELECT inbox FROM deliveries`); len(n) != 1 {
		t.Errorf("deliveries to %q, want one", n)
	}
	if !s.Woken(s.Alice) {
		t.Error("nobody was told of the Accept to be delivered")
	}
	want := "# HELP lightweb_inbox_activities_total Activities that reached a user's writer, by what became of them.\n" +
		"# TYPE lightweb_inbox_activities_total counter\nlightweb_inbox_activities_total{outcome=\"applied\"} 1\n"
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "lightweb_inbox_activities_total"); err != nil {
		t.Error(err)
	}
}

func TestWhoGivesUpDoesNotTakeTheActivityAlong(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, `{"id":"p:/listens/0","type":"Listen","actor":"p:/carol"}`)
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	r := s.Request("p:/carol", mine, listen)
	go func() { answer <- s.Inbox.Receive(ctx, r, []byte(s.Long(listen)), s.Alice) }()
	waiting(t, s, 1)
	cancel()
	if err := <-answer; fault.KindOf(err) != fault.Busy || !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want Busy", err)
	}
	release()
	if err := s.Inbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := events(t, s); len(told) != 2 {
		t.Errorf("events: %q, want the activity applied all the same", told)
	}
}

func TestCloseWaitsForWhatWasTaken(t *testing.T) {
	s := newScene(t)
	release := hold(t, s)
	answers := queue(t, s, listens(3)...)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Inbox.Close(ended); fault.KindOf(err) != fault.Busy {
		t.Errorf("Close without time = %v, want Busy", err)
	}
	if err := s.Send("p:/carol", mine, listen); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("after Close: err = %v, want Unavailable", err)
	}
	release()
	if err := s.Inbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
	if told := events(t, s); len(told) != 3 {
		t.Errorf("events: %q, want the three that were taken", told)
	}
}

func TestNoMoreWaitThanMay(t *testing.T) {
	s := newScene(t)
	s.Inbox.Limit(4, 1<<20) // one domain may use 3 of the 4 places
	release := hold(t, s)
	answers := queue(t, s, listens(3)...)
	if err := s.Send("p:/carol", mine, listen); fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 {
		t.Errorf("err = %v, want Unavailable with a time to wait", err)
	}
	release()
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
	s.MustSend("p:/carol", mine, listen)
	if n := s.Inbox.Waiting(); n != 0 {
		t.Errorf("%d wait at the end, want none", n)
	}
}

// Several recipients read the same activity at once. The race detector fails the test if one of
// them writes into it.
func TestRecipientsShareTheActivity(t *testing.T) {
	s := newScene(t)
	names := []string{"us:/alice"}
	for _, name := range []string{"bob", "eve", "joe"} {
		s.With(name)
		names = append(names, "us:/users/"+name)
	}
	to := `"` + strings.Join(names, `","`) + `"`
	s.MustSend("p:/carol", shared, `{"id":"p:/creates/1","type":"Create","actor":"p:/carol","to":["as:Public"],"cc":[`+to+`],"object":{"id":"p:/notes/1","type":"Note","content":"hi","bto":"p:/dave"}}`)
	for _, name := range []string{"bob", "eve", "joe"} {
		u, _ := s.Local.Owner(s.ID("us:/users/" + name))
		if author := s.Column(t, u, `SELECT raw ->> 'attributedTo' FROM objects`); len(author) != 1 || author[0] != s.Long("p:/carol") {
			t.Errorf("%s has notes by %q, want one by carol", name, author)
		}
	}
}
