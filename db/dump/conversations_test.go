package dump_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
)

// After the backup more epochs may have been handed out: none is handed out twice.
func TestARestoredConversationBeginsATermWithAReset(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	h := dbtest.Hosted(t, c, u, 4)
	b := take(t, c)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Hosted.AdvanceEpoch(ctx, h, user.NextEpoch{Commit: []byte("hash"), GroupInfo: []byte("after the backup")}, now)
		return err
	})
	c = replaced(t, c, cfg, b, u)
	got := dbtest.StateOf(t, c, u, h.ID)
	if got.Epoch != 4 || got.Term != 1 || got.Status != user.StatusResetPending || got.ResetGroupID == "" || got.ResetGroupID == h.GroupID {
		t.Errorf("the restored conversation is %+v", got)
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, from := range []user.HostedConversation{h, *got} {
			if advanced, err := tx.Hosted.AdvanceEpoch(ctx, from, user.NextEpoch{Commit: []byte("hash"), GroupInfo: []byte("again")}, now); advanced || err != nil {
				t.Errorf("epoch 4 was handed out again: %v", err)
			}
		}
		return tx.Hosted.Reset(ctx, *got, []byte("new"), now)
	})
	if after := dbtest.StateOf(t, c, u, h.ID); after.GroupID != got.ResetGroupID || after.Generation != 1 || after.Epoch != 0 || after.Status != user.StatusActive || len(after.FormerGroups) != 1 {
		t.Errorf("after its reset it is %+v", after)
	}
}
