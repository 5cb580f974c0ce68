package outbox

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// After a user's Delete of itself was sent, no action of the user sends anything.
func TestNothingIsSentOnceADeletionWasTold(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.note(map[string]any{"content": "hi"})
	d.must("CreateNote", map[string]any{"content": "the last"})
	for range 2 {
		if err := d.TellDeletion(t.Context(), d.alice); err != nil {
			t.Fatal(err)
		}
	}
	rows := d.owed()
	for _, row := range rows {
		if a, err := vocab.ParseActivity(row.Body); err != nil || a.Type != vocab.Delete {
			t.Errorf("owed is a %s, %v", a.Type, err)
		}
	}
	if len(rows) != 2 {
		t.Errorf("the Delete goes to %d inboxes, want 2", len(rows))
	}
	d.refused("CreateNote", map[string]any{"content": "too late"}, fault.Gone, "")
	d.refused("Follow", map[string]any{"actorUri": bob}, fault.Gone, "")
	if err := d.TellProfile(t.Context(), d.alice); fault.KindOf(err) != fault.Gone {
		t.Errorf("of the profile others are told with %v", err)
	}
	if rows := d.owed(); len(rows) != 0 {
		t.Errorf("owed are %d deliveries", len(rows))
	}
}

// A deletion waits for all actions that are just being stored, so that none of them is sent after
// it.
func TestADeletionWaitsForWhatIsBeingStored(t *testing.T) {
	t.Parallel()
	d := town(t)
	told := make(chan error, 1)
	d.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.HoldAudience(ctx); err != nil {
			return err
		}
		go func() { told <- d.TellDeletion(t.Context(), d.alice) }()
		dbtest.AwaitLock(t, d.c, d.alice, told)
		return nil
	})
	if err := <-told; err != nil {
		t.Fatal(err)
	}
}
