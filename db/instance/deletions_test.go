package instance_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Once a removal has begun, the user counts as removed, because the user's database may be
// missing.
func TestAUserIsRemovedFromTheBeginningOfTheRemoval(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	ctx := t.Context()
	u := dbtest.User(t, c, "anna")
	if err := c.Instance.Deliveries.Want(ctx, []vocab.Username{u}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		step func() error
		want bool
	}{
		{"active", func() error { return nil }, false},
		{"being deleted", func() error { _, err := c.Instance.Users.BeginDeletion(ctx, u, time.Now()); return err }, false},
		{"being removed", func() error { return c.Instance.Users.BeginRemoval(ctx, u) }, true},
		{"deleted", func() error { return c.Instance.Users.FinishDeletion(ctx, u) }, true},
	} {
		if err := tt.step(); err != nil {
			t.Fatal(err)
		}
		if found, err := c.Instance.Users.Find(ctx, u); err != nil || found.IsRemoved() != tt.want {
			t.Errorf("%s: IsRemoved = %t, %v, want %t", tt.name, found.IsRemoved(), err, tt.want)
		}
		if due, err := c.Instance.Deliveries.ListDue(ctx, time.Time{}); err != nil || (len(due) == 0) != tt.want {
			t.Errorf("%s: ListDue = %v, %v, want none: %t", tt.name, due, err, tt.want)
		}
	}
}
