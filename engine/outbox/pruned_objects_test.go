package outbox

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

// The object of an action is pruned after the action has read it and before the action is
// committed. The action is refused. It succeeds when it is repeated.
func TestAnActionDoesNotStandWithoutAnObjectThatIsPrunedMeanwhile(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.must("Like", map[string]any{"objectId": bobsPost}) // stores a copy of the post
	db := dbtest.SQL(t, d.c, d.alice)
	prune, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prune.ExecContext(t.Context(), `DELETE FROM objects WHERE uri = $1`, string(bobsPost)); err != nil {
		t.Fatal(err)
	}
	did := make(chan error, 1)
	go func() { _, err := d.dispatch("Boost", map[string]any{"objectId": bobsPost}); did <- err }()
	dbtest.AwaitLock(t, d.c, d.alice, did)
	if err := prune.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-did; fault.Of(err) == nil || fault.Of(err).Code != "changed_meanwhile" {
		t.Errorf("the boost is answered %v", err)
	}
	d.must("Boost", map[string]any{"objectId": bobsPost})
	d.read(func(ctx context.Context, tx *user.Tx) error {
		o, err := tx.Objects.Find(ctx, bobsPost)
		if err == nil && o == nil {
			t.Error("the boosted object is not there")
		}
		return err
	})
}
