package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A connection keeps its query plans. The statistics of a new user's tables say that the tables
// are empty. The queries of each batch must not scan a whole table nevertheless.
func TestANewUsersTablesAreNotReadWholeWhileTheyGrow(t *testing.T) {
	t.Parallel()
	c := open(t, destroyed(t, dbtest.Config(t)))
	u := dbtest.User(t, c, "alice")
	database := databaseOf(t, c, u)
	for batch := range 20 {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			var ids, objects []vocab.ID
			for n := range 50 {
				a, o, _ := note(bob, batch*50+n, now)
				ids, objects = append(ids, a.URI), append(objects, o.URI)
			}
			if _, err := tx.Activities.ClaimAhead(ctx, by(bob, ids...), []vocab.ID{bob}, by(bob, objects...)); err != nil {
				return err
			}
			for n := range 50 {
				if err := addNote(ctx, tx, bob, batch*50+n, now); err != nil {
					return err
				}
				if err := tx.Events.Add(ctx, event(n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	c.Close() // a session publishes its counts when it ends
	rows, err := session(t, database).Query(t.Context(), `SELECT relname, seq_tup_read FROM pg_stat_user_tables WHERE seq_tup_read > 1000`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var read int64
		if err := rows.Scan(&table, &read); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%d rows of %s were read in scans of the whole table", read, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// Each of 3,000 outcomes recorded at once finds its delivery by the delivery's id, and does not
// scan all pending deliveries.
func TestOutcomesAreFoundByTheirIDs(t *testing.T) {
	t.Parallel()
	c, u, rowsReadBy := metered(t)
	const many = 3000
	inboxes := make([]user.Inbox, many)
	for n := range inboxes {
		inboxes[n] = inboxOn("p.example", n)
	}
	rows := committed(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Deliveries.EnqueueLeased(ctx, job("Create", ""), inboxes, now, user.DeliveryLeases{Owner: "me", Until: now.Add(lease), Most: many})
	}).Leased
	outcomes := make([]user.Outcome, len(rows))
	for n, r := range rows {
		outcomes[n] = user.Outcome{Delivery: r.ID, Status: user.DeliveryDelivered, Spent: true}
	}
	n := rowsReadBy(func(c *dbtest.Cluster) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			finished, err := tx.Deliveries.Finish(ctx, "me", outcomes, now)
			if len(finished) != many {
				t.Errorf("%d outcomes are recorded, want %d", len(finished), many)
			}
			return err
		})
	}, "deliveries")
	if n > 5*many {
		t.Errorf("%d rows and entries of indexes were read for %d outcomes", n, many)
	}
}

// 10,000 deliveries are due. A claim reads little more than the deliveries that it takes. This
// holds whether the table's statistics were made before the deliveries were stored or after.
func TestAClaimReadsLittleMoreThanItTakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, refresh string
		forwarded     bool
	}{{"statistics from before", ``, false}, {"statistics from after", `ANALYZE`, false}, {"forwarded", ``, true}, {"forwarded, statistics from after", `ANALYZE`, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u, rowsReadBy := metered(t)
			run(t, databaseOf(t, c, u), `ANALYZE`)
			const jobs, each, claimed = 1000, 10, 50
			inboxes := make([]user.Inbox, each)
			for n := range inboxes {
				inboxes[n] = inboxOn("p.example", n)
			}
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				for n := range jobs {
					j := job("Create", vocab.ID(fmt.Sprintf("https://here.example/%d", n)))
					j.Forwarded = tt.forwarded
					if err := tx.Deliveries.Enqueue(ctx, j, inboxes, now.Add(-time.Duration(n)*time.Second)); err != nil {
						return err
					}
				}
				return nil
			})
			if tt.refresh != "" {
				run(t, databaseOf(t, c, u), tt.refresh)
			}
			n := rowsReadBy(func(c *dbtest.Cluster) {
				write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
					rows, err := tx.Deliveries.Claim(ctx, "me", now, lease, user.ClaimBounds{Most: claimed, Forwarded: claimed})
					if len(rows) != claimed {
						t.Errorf("%d are claimed, want %d", len(rows), claimed)
					}
					return err
				})
			}, "deliveries", "delivery_jobs")
			if n > 20*claimed {
				t.Errorf("%d rows and entries of indexes were read to claim %d of %d", n, claimed, jobs*each)
			}
		})
	}
}

// Each process reads the hosts with parked deliveries once, and again after deliveries were
// resumed. The query does not read deliveries that have ended.
func TestParkedDeliveriesAreFoundWithoutThoseThatHaveEnded(t *testing.T) {
	t.Parallel()
	c, u, rowsReadBy := metered(t)
	database := databaseOf(t, c, u)
	const many = 3000
	var inboxes []user.Inbox
	for n := range many {
		inboxes = append(inboxes, inboxOn("p.example", n))
	}
	enqueue(t, c, u, job("Create", ""), now, inboxes...)
	run(t, database, `UPDATE deliveries SET status = CASE WHEN id % 1000 = 0 THEN 'parked' ELSE 'delivered' END`)
	run(t, database, `VACUUM deliveries`)
	n := rowsReadBy(func(c *dbtest.Cluster) {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			hosts, err := tx.Deliveries.ListParkedHosts(ctx)
			if len(hosts) != 1 || hosts[0] != "p.example" || err != nil {
				t.Errorf("ListParkedHosts = %v, %v, want p.example", hosts, err)
			}
			for host, want := range map[string]bool{"p.example": true, "q.example": false} {
				if has, err := tx.Deliveries.HasParked(ctx, host); has != want || err != nil {
					t.Errorf("HasParked(%s) = %t, %v, want %t", host, has, err, want)
				}
			}
			return nil
		})
	}, "deliveries")
	if n > 100 {
		t.Errorf("%d rows and entries of indexes were read for 3 parked deliveries of %d", n, many)
	}
}

// metered returns a new cluster with the user alice, and a function that closes the cluster, runs
// work() on another one with the same databases, and returns how many rows and index entries of
// the tables work() has made the server read.
func metered(t *testing.T) (c *dbtest.Cluster, u vocab.Username, rowsReadBy func(work func(*dbtest.Cluster), tables ...string) int64) {
	t.Helper()
	cfg := destroyed(t, dbtest.Config(t))
	c = open(t, cfg)
	u = dbtest.User(t, c, "alice")
	conn := session(t, databaseOf(t, c, u))
	return c, u, func(work func(*dbtest.Cluster), tables ...string) int64 {
		t.Helper()
		rowsRead := func() (n int64) {
			t.Helper()
			if err := conn.QueryRow(t.Context(), `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = ANY($1))
				+ (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = ANY($1))`, tables).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		c.Close() // a session publishes its counts when it ends
		before := rowsRead()
		other := open(t, cfg)
		work(other)
		other.Close()
		return rowsRead() - before
	}
}

// The user has 5,000 activities. A deletion or an edit reads little more of them than it changes.
func TestADeletionReadsLittleMoreThanItRemoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, tx *user.Tx, objects []vocab.ID) error
	}{
		{"one deletion", func(ctx context.Context, tx *user.Tx, objects []vocab.ID) error {
			_, err := tx.Objects.Bury(ctx, user.Grave{URI: objects[0], Author: bob, Tombstone: []byte(headline)}, now)
			return err
		}},
		{"the deletions of an actor", func(ctx context.Context, tx *user.Tx, objects []vocab.ID) error {
			var graves []user.Grave
			for _, id := range objects[:100] {
				graves = append(graves, user.Grave{URI: id, Author: bob, Tombstone: []byte(headline)})
			}
			_, err := tx.Objects.BuryAll(ctx, graves, now)
			return err
		}},
		{"an edit", func(ctx context.Context, tx *user.Tx, objects []vocab.ID) error {
			return tx.Deliveries.Revise(ctx, user.Revision{Object: objects[0], Document: []byte(`{}`), Update: "https://here.example/update"}, now)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, u, rowsReadBy := metered(t)
			const held = 5000
			var objects []vocab.ID
			write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
				for n := range held {
					if err := addNote(ctx, tx, bob, n, now); err != nil {
						return err
					}
					_, o, _ := note(bob, n, now)
					objects = append(objects, o.URI)
				}
				return nil
			})
			run(t, databaseOf(t, c, u), `ANALYZE`)
			n := rowsReadBy(func(c *dbtest.Cluster) {
				write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tt.do(ctx, tx, objects) })
			}, "activities", "deliveries", "delivery_jobs")
			if n > held/2 {
				t.Errorf("%d rows and entries of indexes were read, of %d activities", n, held)
			}
		})
	}
}
