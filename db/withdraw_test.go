package db_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A lease that no outcome was recorded for is an attempt that may have got through: nothing of it
// is withdrawn as if it had not been made.
func TestLostLeaseCountsAsTried(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const note = vocab.ID("https://here.example/users/alice/objects/1")
	claim := func(owner string, at time.Time) func(context.Context, *db.Tx) error {
		return func(ctx context.Context, tx *db.Tx) error {
			rows, err := tx.ClaimDeliveries(ctx, owner, at, time.Minute, db.ClaimBounds{Most: 10})
			if err == nil && len(rows) != 1 {
				t.Errorf("%s claimed %d deliveries, want 1", owner, len(rows))
			}
			return err
		}
	}
	finish := func(o db.Outcome) func(context.Context, *db.Tx) error {
		return func(ctx context.Context, tx *db.Tx) error {
			o.Delivery, o.Status, o.NextAt = 1, db.DeliveryPending, now.Add(time.Hour)
			_, err := tx.FinishDeliveries(ctx, "serve 1", []db.Outcome{o}, now)
			return err
		}
	}
	for _, c := range []struct {
		name      string
		steps     []func(context.Context, *db.Tx) error
		withdrawn int
	}{
		{"never claimed", nil, 1},
		{"claimed, and put off before an attempt", []func(context.Context, *db.Tx) error{claim("serve 1", now), finish(db.Outcome{})}, 1},
		{"claimed", []func(context.Context, *db.Tx) error{claim("serve 1", now)}, 0},
		{"an attempt failed", []func(context.Context, *db.Tx) error{claim("serve 1", now), finish(db.Outcome{Spent: true})}, 0},
		{"the lease ended", []func(context.Context, *db.Tx) error{claim("serve 2", now), claim("serve 1", now.Add(time.Hour)), finish(db.Outcome{})}, 0},
		{"given back", []func(context.Context, *db.Tx) error{claim("serve 1", now), func(ctx context.Context, tx *db.Tx) error {
			return tx.ReleaseDeliveries(ctx, "serve 1", now)
		}}, 0},
		{"its process was killed", []func(context.Context, *db.Tx) error{claim("serve 1", now), func(ctx context.Context, tx *db.Tx) error {
			return tx.TakeOverDeliveries(ctx, "serve", "serve 2", now)
		}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := dbtest.New(t)
			alice := dbtest.User(t, cluster, "alice")
			write := func(work func(context.Context, *db.Tx) error) {
				t.Helper()
				if err := cluster.Write(t.Context(), alice, work); err != nil {
					t.Fatal(err)
				}
			}
			write(func(ctx context.Context, tx *db.Tx) error {
				return tx.Enqueue(ctx, db.Job{ID: uuid.New(), Activity: "https://here.example/1", Object: note, Type: "Create", Body: []byte("secret")},
					[]db.Inbox{{URL: "https://a.example/inbox", Host: "a.example", Targets: []vocab.ID{"https://a.example/u"}}}, now)
			})
			for _, step := range c.steps {
				write(step)
			}
			write(func(ctx context.Context, tx *db.Tx) error {
				got, err := tx.WithdrawUntried(ctx, note, now)
				if len(got) != c.withdrawn {
					t.Errorf("withdrawn are %q, want %d", got, c.withdrawn)
				}
				return err
			})
		})
	}
}

// An attempt that was under way when the post was deleted is the last one, and what its host
// answered is not kept: it may repeat the post.
func TestAttemptDuringDeleteIsTheLast(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const note = vocab.ID("https://here.example/users/alice/objects/1")
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	var claimed []db.Delivery
	for _, work := range []func(context.Context, *db.Tx) error{
		func(ctx context.Context, tx *db.Tx) error {
			for _, kind := range []string{"Create", "Delete"} {
				err := tx.Enqueue(ctx, db.Job{ID: uuid.New(), Activity: vocab.ID("https://here.example/" + kind), Object: note, Type: kind, Body: []byte("secret")},
					[]db.Inbox{{URL: "https://a.example/inbox", Host: "a.example", Targets: []vocab.ID{"https://a.example/u"}}}, now)
				if err != nil {
					return err
				}
			}
			_, err := tx.ClaimDeliveries(ctx, "serve 1", now, time.Minute, db.ClaimBounds{Most: 10})
			return err
		},
		func(ctx context.Context, tx *db.Tx) error {
			if _, err := tx.BuryObject(ctx, db.Grave{URI: note, Author: "https://here.example/users/alice", Tombstone: []byte("{}")}, now); err != nil {
				return err
			}
			rows, err := tx.ClaimDeliveries(ctx, "serve 1", now, time.Minute, db.ClaimBounds{Most: 10})
			if len(rows) > 0 {
				t.Errorf("claimed %q while the Create is under way", rows[0].Type)
			}
			return err
		},
		func(ctx context.Context, tx *db.Tx) error {
			_, err := tx.FinishDeliveries(ctx, "serve 1", []db.Outcome{{Delivery: 1, Status: db.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true,
				HTTPStatus: 503, Answer: []byte("no: secret"), Headers: "server: secret"}}, now)
			return err
		},
		func(ctx context.Context, tx *db.Tx) (err error) {
			claimed, err = tx.ClaimDeliveries(ctx, "serve 1", now, time.Minute, db.ClaimBounds{Most: 10})
			return err
		},
	} {
		if err := c.Write(t.Context(), alice, work); err != nil {
			t.Fatal(err)
		}
	}
	if len(claimed) != 1 || claimed[0].Type != "Delete" {
		t.Errorf("%d deliveries follow, want the Delete", len(claimed))
	}
	var status string
	var answered bool
	err := dbtest.SQL(t, c, alice).QueryRowContext(t.Context(), `SELECT status, coalesce(last_answer::text, last_headers) IS NOT NULL FROM deliveries WHERE id = 1`).Scan(&status, &answered)
	if err != nil || status != db.DeliverySkipped || answered {
		t.Errorf("the Create is %s, its answer kept: %t (%v), want skipped without an answer", status, answered, err)
	}
}
