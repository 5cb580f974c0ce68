package conversation_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// A device was off for months. The refusal of its commit lists the commits that it missed. If the
// commit of the device's own epoch is no longer stored, the refusal names no winner, and the
// device has to join again.
func TestADeviceThatWasOffForMonthsCatchesUpByCommits(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	behind := s.group
	if _, err := s.send(s.alice, s.group.Message()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.commit(s.alice, mlstest.Change{})
	}
	s.later(90 * 24 * time.Hour)
	prune := func() {
		t.Helper()
		if _, err := s.store.Prune(t.Context(), s.user, user.Pruning{Me: aliceID, Messages: s.now().Add(-30 * 24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	prune()
	late := func() (epochs []int64, hasWinner bool) {
		t.Helper()
		r, _ := s.request(s.bob, behind, mlstest.Change{})
		_, err := s.registry.Commit(t.Context(), s.at, r)
		c := s.wantConflict("a commit of months ago", err, "epoch_conflict")
		for _, e := range c.Missing {
			epochs = append(epochs, e.Epoch)
		}
		return epochs, c.HasWinner
	}
	if epochs, hasWinner := late(); len(epochs) != 3 || epochs[0] != int64(behind.Epoch) || !hasWinner {
		t.Errorf("missing are the commits of the epochs %d (winner %t), want three from %d on", epochs, hasWinner, behind.Epoch)
	}
	if n := len(s.log()); n != 4 {
		t.Errorf("the log has %d entries, want the 4 commits", n)
	}
	db := dbtest.SQL(t, s.store, s.user)
	if _, err := db.ExecContext(context.Background(), `DELETE FROM mls_log WHERE epoch <= $1`, int64(behind.Epoch)); err != nil {
		t.Fatal(err)
	}
	if epochs, hasWinner := late(); len(epochs) != 2 || epochs[0] != int64(behind.Epoch)+1 || hasWinner {
		t.Errorf("missing are the commits of the epochs %d (winner %t), want two from %d on, and no winner", epochs, hasWinner, behind.Epoch+1)
	}
}
