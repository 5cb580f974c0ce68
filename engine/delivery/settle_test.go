package delivery

import (
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// claimAll claims u's due deliveries. It fails the test unless there are n.
func claimAll(t *testing.T, q postgres, u vocab.Username, n int, now time.Time) []user.Delivery {
	t.Helper()
	got, err := q.runTurn(t.Context(), u, turn{now: now, claim: user.ClaimBounds{Most: 10}})
	if err != nil || len(got.rows) != n {
		t.Fatalf("claimed %+v, %v, want %d deliveries", got.rows, err, n)
	}
	return got.rows
}

// The error of a delivery can have any bytes in it. For example, the error of a TLS handshake
// quotes the host name of a certificate, and that name may contain any byte.
func TestADeliveryFailsWhateverBytesItsErrorQuotes(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	job := owe(t, c, u, "Like", "", "p.example", now)
	q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
	row := claimAll(t, q, u, 1, now)[0]
	failed := entry{delivery: row, outcome: user.Outcome{Delivery: row.ID, Status: user.DeliveryFailed, Spent: true, Error: "certificate is valid for a\x00b, not p.example"}}
	if _, err := q.runTurn(t.Context(), u, turn{now: now, entries: []entry{failed}}); err != nil {
		t.Fatal(err)
	}
	wantFailed(t, c, u, job)
}

// unstorable returns the outcome of a successful delivery. It has a value that no column can
// store.
func unstorable(d user.Delivery) entry {
	return entry{delivery: d, outcome: user.Outcome{Delivery: d.ID, Status: user.DeliveryDelivered, Spent: true, HTTPStatus: 202, Inbox: "https://p.example/\x00"}}
}

func TestAnOutcomeThatCannotBeStoredHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(q postgres, u vocab.Username, all []entry, now time.Time) error{
		"a turn": func(q postgres, u vocab.Username, all []entry, now time.Time) error {
			got, err := q.runTurn(t.Context(), u, turn{now: now, entries: all, claim: user.ClaimBounds{Most: 10}})
			if err == nil && (len(got.waited) != 5 || len(got.rows) != 1) {
				t.Errorf("%d first successes and %d claimed deliveries, want 5 and the next one", len(got.waited), len(got.rows))
			}
			return err
		},
		"the end": func(q postgres, u vocab.Username, all []entry, now time.Time) error {
			return q.release(t.Context(), u, all, now)
		},
		"a command": func(q postgres, u vocab.Username, all []entry, now time.Time) error {
			attempted := make([]Attempted, len(all))
			for n, e := range all {
				attempted[n].entry = e
			}
			d := Dispatcher{Deps: Deps{Store: q.store, Users: q.users, Owner: q.owner, Log: q.log}}
			return d.Record(t.Context(), u, attempted, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dbtest.New(t)
			u := dbtest.User(t, c, "alice")
			now := time.Now()
			for range 5 {
				owe(t, c, u, "Create", "", "p.example", now)
			}
			q := postgres{c, c.Instance.Users, "one", slog.New(slog.DiscardHandler)}
			var all []entry
			for n, d := range claimAll(t, q, u, 5, now) {
				if e := unstorable(d); n == 3 {
					all = append(all, e)
				} else {
					e.outcome.Inbox = ""
					all = append(all, e)
				}
			}
			owe(t, c, u, "Create", "", "p.example", now)
			if err := write(q, u, all, now); err != nil {
				t.Fatal(err)
			}
			if n := delivered(t, c, u); n != 5 {
				t.Errorf("%d deliveries are delivered, want all 5", n)
			}
		})
	}
}

func delivered(t *testing.T, c *db.Cluster, u vocab.Username) (n int) {
	t.Helper()
	if err := dbtest.SQL(t, c, u).QueryRowContext(t.Context(), `SELECT count(*) FROM deliveries WHERE status = 'delivered'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
