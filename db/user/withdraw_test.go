package user_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A lease that ended without an outcome counts as an attempt, because the peer may have received
// the activity. Such a delivery is not withdrawn.
func TestLostLeaseCountsAsTried(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const note = vocab.ID("https://here.example/users/alice/objects/1")
	claim := func(owner string, at time.Time) func(context.Context, *user.Tx) error {
		return func(ctx context.Context, tx *user.Tx) error {
			rows, err := tx.Deliveries.Claim(ctx, owner, at, time.Minute, user.ClaimBounds{Most: 10})
			if err == nil && len(rows) != 1 {
				t.Errorf("%s claimed %d deliveries, want 1", owner, len(rows))
			}
			return err
		}
	}
	finish := func(o user.Outcome) func(context.Context, *user.Tx) error {
		return func(ctx context.Context, tx *user.Tx) error {
			o.Delivery, o.Status, o.NextAt = 1, user.DeliveryPending, now.Add(time.Hour)
			_, err := tx.Deliveries.Finish(ctx, "serve 1", []user.Outcome{o}, now)
			return err
		}
	}
	for _, c := range []struct {
		name      string
		steps     []func(context.Context, *user.Tx) error
		withdrawn int
	}{
		{"never claimed", nil, 1},
		{"claimed, and put off before an attempt", []func(context.Context, *user.Tx) error{claim("serve 1", now), finish(user.Outcome{})}, 1},
		{"claimed", []func(context.Context, *user.Tx) error{claim("serve 1", now)}, 0},
		{"an attempt failed", []func(context.Context, *user.Tx) error{claim("serve 1", now), finish(user.Outcome{Spent: true})}, 0},
		{"the lease ended", []func(context.Context, *user.Tx) error{claim("serve 2", now), claim("serve 1", now.Add(time.Hour)), finish(user.Outcome{})}, 0},
		{"given back", []func(context.Context, *user.Tx) error{claim("serve 1", now), func(ctx context.Context, tx *user.Tx) error {
			return tx.Deliveries.Release(ctx, "serve 1", now)
		}}, 0},
		{"its process was killed", []func(context.Context, *user.Tx) error{claim("serve 1", now), func(ctx context.Context, tx *user.Tx) error {
			return tx.Deliveries.TakeOver(ctx, "serve", "serve 2", now)
		}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := dbtest.New(t)
			alice := dbtest.User(t, cluster, "alice")
			write := func(work func(context.Context, *user.Tx) error) {
				t.Helper()
				if err := cluster.Write(t.Context(), alice, work); err != nil {
					t.Fatal(err)
				}
			}
			write(func(ctx context.Context, tx *user.Tx) error {
				return tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.New(), Activity: "https://here.example/1", Object: note, Type: "Create", Body: []byte("secret")},
					[]user.Inbox{{URL: "https://a.example/inbox", Host: "a.example", Targets: []vocab.ID{"https://a.example/u"}}}, now)
			})
			for _, step := range c.steps {
				write(step)
			}
			write(func(ctx context.Context, tx *user.Tx) error {
				got, err := tx.Deliveries.WithdrawUntried(ctx, note, now)
				if len(got) != c.withdrawn {
					t.Errorf("withdrawn are %q, want %d", got, c.withdrawn)
				}
				return err
			})
		})
	}
}

// A post is deleted during an attempt to deliver it. There is no further attempt. The peer's
// answer is not stored, because it may repeat the post.
func TestAttemptDuringDeleteIsTheLast(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const note = vocab.ID("https://here.example/users/alice/objects/1")
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	var claimed []user.Delivery
	for _, work := range []func(context.Context, *user.Tx) error{
		func(ctx context.Context, tx *user.Tx) error {
			for _, kind := range []string{"Create", "Delete"} {
				err := tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.New(), Activity: vocab.ID("https://here.example/" + kind), Object: note, Type: kind, Body: []byte("secret")},
					[]user.Inbox{{URL: "https://a.example/inbox", Host: "a.example", Targets: []vocab.ID{"https://a.example/u"}}}, now)
				if err != nil {
					return err
				}
			}
			_, err := tx.Deliveries.Claim(ctx, "serve 1", now, time.Minute, user.ClaimBounds{Most: 10})
			return err
		},
		func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Objects.Bury(ctx, user.Grave{URI: note, Author: "https://here.example/users/alice", Tombstone: []byte("{}")}, now); err != nil {
				return err
			}
			rows, err := tx.Deliveries.Claim(ctx, "serve 1", now, time.Minute, user.ClaimBounds{Most: 10})
			if len(rows) > 0 {
				t.Errorf("claimed %q while the Create is under way", rows[0].Type)
			}
			return err
		},
		func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Deliveries.Finish(ctx, "serve 1", []user.Outcome{{Delivery: 1, Status: user.DeliveryPending, NextAt: now.Add(time.Hour), Spent: true,
				HTTPStatus: 503, Answer: []byte("no: secret"), Headers: "server: secret"}}, now)
			return err
		},
		func(ctx context.Context, tx *user.Tx) (err error) {
			claimed, err = tx.Deliveries.Claim(ctx, "serve 1", now, time.Minute, user.ClaimBounds{Most: 10})
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
	if err != nil || status != user.DeliverySkipped || answered {
		t.Errorf("the Create is %s, its answer kept: %t (%v), want skipped without an answer", status, answered, err)
	}
}

// A delivery has several targets. When one of them is withdrawn, the delivery stays pending for
// the others and records no error.
func TestADeliveryIsSkippedOnlyWhenItHasNoTargetLeft(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, targets := range [][]vocab.ID{{bob}, {bob, carol}, {carol}} {
			activity := vocab.ID(fmt.Sprint("https://here.example/", n))
			err := tx.Deliveries.Enqueue(ctx, user.Job{ID: uuid.New(), Activity: activity, Object: activity + "/note", Type: vocab.Create, Body: []byte("{}"), Audience: targets},
				[]user.Inbox{{URL: "https://a.example/inbox", Host: "a.example", Targets: targets}}, now)
			if err != nil {
				return err
			}
		}
		return tx.Deliveries.Withdraw(ctx, bob, nil, nil, now)
	})
	got := held(t, databaseOf(t, c, u), `SELECT status, array_to_string(targets, ' '), last_error FROM deliveries ORDER BY id`)
	want := []string{"(skipped," + string(bob) + `,"the user shares it with the recipient no more")`, "(pending," + string(carol) + ",)", "(pending," + string(carol) + ",)"}
	if !slices.Equal(got, want) {
		t.Errorf("the deliveries are %q, want %q", got, want)
	}
}
