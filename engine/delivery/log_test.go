package delivery

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
)

// line is a log line about the outcome of a delivery.
type line struct {
	Level, Msg, Host, Inbox, User, Err string
	Attempt, Status, Unlogged          int
	Next                               time.Time
}

// reporter returns a sender whose clock always shows the parameter now. It also returns a function
// that reads the sender's log lines from level Info on.
func reporter(t *testing.T, now time.Time) (s *sender, read func() []line) {
	t.Helper()
	var log bytes.Buffer
	deps := newBench(t, nil).Deps
	deps.Now, deps.Log = func() time.Time { return now }, slog.New(slog.NewJSONHandler(&log, nil))
	return New(deps).sender, func() (all []line) {
		for lines := bufio.NewScanner(&log); lines.Scan(); {
			var l line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return all
	}
}

func rowTo(n int, domain string) *row {
	r := &row{user: alice, domain: domain}
	r.Delivery = user.Delivery{ID: int64(n), Type: "Create", Activity: "https://here.example/1", Host: "h." + domain, Inbox: "https://h.p.example/inbox", Created: time.Unix(1e9, 0)}
	return r
}

func TestOutcomesAreLoggedWithTheNextAttempt(t *testing.T) {
	now := time.Unix(1e9, 0)
	s, read := reporter(t, now)
	r := rowTo(1, "p.example")
	var retried user.Outcome
	for _, status := range []int{202, 503, 404} {
		o := backoff{lastingTypes}.judgeAttempt(r.Delivery, transport.Attempt{Status: status}, nil, now)
		if status == 503 {
			retried = o
		}
		s.logOutcome(t.Context(), r, o)
	}
	want := []line{
		{Level: "INFO", Msg: "activity delivered", Host: "h.p.example", Attempt: 1, Status: 202},
		{Level: "INFO", Msg: "delivery put off", Host: "h.p.example", Attempt: 1, Status: 503, User: "alice", Inbox: "https://h.p.example/inbox",
			Err: "the host answered 503 Service Unavailable", Next: retried.NextAt.UTC()},
		{Level: "INFO", Msg: "delivery given up", Host: "h.p.example", Attempt: 1, Status: 404, User: "alice", Inbox: "https://h.p.example/inbox", Err: "the inbox is gone"},
	}
	if got := read(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("logged\n%+v\nwant\n%+v", got, want)
	}
}

// Only samples of outcomes are logged, so that a post to thousands of inboxes does not fill the
// log. Many successes do not suppress lines about deliveries that were put off. One failing domain
// does not suppress lines about another.
func TestOutcomesAreLoggedInSamples(t *testing.T) {
	now := time.Unix(1e9, 0)
	s, read := reporter(t, now)
	report := func(n int, domain string, status int) {
		r := rowTo(n, domain)
		s.logOutcome(t.Context(), r, backoff{lastingTypes}.judgeAttempt(r.Delivery, transport.Attempt{Status: status}, nil, now))
	}
	for n := range 5000 {
		report(n, fmt.Sprintf("p%d.example", n), 202)
		report(n, "broken.example", 503)
	}
	report(0, "q.example", 503)
	count := map[string]int{}
	var last line
	for _, l := range read() {
		count[l.Msg]++
		last = l
	}
	if n := count["activity delivered"]; n == 0 || n > 20 {
		t.Errorf("%d lines about what got through, want 1 to 20", n)
	}
	if n := count["delivery put off"]; n == 0 || n > 100 {
		t.Errorf("%d lines about what was put off, want 1 to 100", n)
	}
	if last.Host != "h.q.example" || last.Unlogged == 0 || count["delivery put off"]+last.Unlogged != 5001 {
		t.Errorf("the last of %v lines is %+v, want that of q.example, with how many were left out", count, last)
	}
}
