package user_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A batch ends a pass when it finds no more requests, not when an object of one is missing.
func TestAllOldRequestsArePruned(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	database := databaseOf(t, c, u)
	const all = 1001 // more than one batch
	run(t, database, fmt.Sprintf(`INSERT INTO requests (activity_uri, actor_uri, host, requested_at)
		SELECT 'https://peer.example/' || n, '%s', 'peer.example', '2026-03-01'::timestamptz + n * interval '1 second' FROM generate_series(1, %d) n`, bob, all))
	did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Deliveries: retention(now.Add(60 * 24 * time.Hour))})
	if left := number(t, database, `SELECT count(*) FROM requests`); err != nil || left != 0 || did.Objects != 0 {
		t.Errorf("%d requests are left and %d objects went, %v; want none of either", left, did.Objects, err)
	}
}

// The words of a stranger go with the request, whatever the form in which they name their author.
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
