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

// A pass over the requests ends when no more requests are found. It does not end when the object
// of a request is missing.
func TestAllOldRequestsArePruned(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	const all = 1001 // fills more than one batch
	run(t, database, fmt.Sprintf(`INSERT INTO requests (activity_uri, actor_uri, host, requested_at)
		SELECT 'https://peer.example/' || n, '%s', 'peer.example', '2026-03-01'::timestamptz + n * interval '1 second' FROM generate_series(1, %d) n`, bob, all))
	did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Deliveries: retention(now.Add(60 * 24 * time.Hour))})
	if left := number(t, database, `SELECT count(*) FROM requests`); err != nil || left != 0 || did.Objects != 0 {
		t.Errorf("%d requests are left and %d objects went, %v; want none of either", left, did.Objects, err)
	}
}

// A stranger's request is removed together with its object. The object may name its author in any
// of these forms.
func TestARequestGoesWithItsObject(t *testing.T) {
	t.Parallel()
	for _, form := range []string{`%q`, `{"id":%q}`, `[{"type":"Person","id":%q}]`} {
		c, u := alice(t)
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			activity := user.Activity{ID: uuid.Must(uuid.NewV7()), URI: bob + "/1", Actor: bob, Type: vocab.Create, Direction: user.Inbound, Object: thing("1"), Raw: []byte(`{}`), Published: now}
			if err := tx.Activities.Add(ctx, activity); err != nil {
				return err
			}
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: thing("1"), Published: now, Raw: fmt.Appendf(nil, `{"attributedTo":`+form+`}`, bob)}); err != nil {
				return err
			}
			if err := tx.Requests.Add(ctx, user.Request{Activity: bob + "/1", Actor: bob, Host: "peer.example"}, now); err != nil {
				return err
			}
			return tx.Requests.Remove(ctx, bob)
		})
		if left := number(t, databaseOf(t, c, u), `SELECT (SELECT count(*) FROM objects) + (SELECT count(*) FROM activities)`); left != 0 {
			t.Errorf("with %s %d rows are left, want none", form, left)
		}
	}
}

// Two actors of one server may use the same URI for their activities and objects.
func TestTheSendersOfARequestAreFoundByEitherUri(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	const eve, dan = "https://peer.example/users/eve", "https://peer.example/users/dan"
	request := func(ctx context.Context, tx *user.Tx, actor, activity, object vocab.ID) error {
		if err := tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: activity, Actor: actor, Type: vocab.Create, Direction: user.Inbound, Object: object, Raw: []byte(`{}`), Published: now}); err != nil {
			return err
		}
		return tx.Requests.Add(ctx, user.Request{Activity: activity, Actor: actor, Host: "peer.example"}, now)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, r := range [][3]vocab.ID{{bob, bob + "/1", thing("1")}, {eve, eve + "/1", thing("1")}, {dan, dan + "/1", thing("2")}} {
			if err := request(ctx, tx, r[0], r[1], r[2]); err != nil {
				return err
			}
		}
		// Dan's request has this URI, too. Bob's activity with the URI is no request.
		return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: dan + "/1", Actor: bob, Type: vocab.Create, Direction: user.Inbound, Object: thing("3"), Raw: []byte(`{}`), Published: now})
	})
	for uri, want := range map[vocab.ID][]vocab.ID{bob + "/1": {bob}, thing("1"): {bob, eve}, thing("2"): {dan}, thing("3"): nil, thing("4"): nil} {
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			got, err := tx.Requests.FindSenders(ctx, uri)
			if !slices.Equal(got, want) {
				t.Errorf("the senders of %s are %v, want %v", uri, got, want)
			}
			return err
		})
	}
}
