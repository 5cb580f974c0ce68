package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
)

func TestAnEarlyMessageThatIsOldIsPruned(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for hash, at := range map[string]time.Time{"old": longAgo, "new": now} {
			m := user.EarlyMessage{Epoch: h.Epoch, Sender: "https://swicg.example/sam", Content: []byte(hash), Hash: []byte(hash)}
			if isNew, err := tx.Hosted.KeepEarly(ctx, h, m, at); err != nil || !isNew {
				t.Errorf("the message is new: %v, %v", isNew, err)
			}
		}
		return nil
	})
	pruneMessages(t, c, u, 1)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		left, err := tx.Hosted.TakeEarly(ctx, h)
		if len(left) != 1 || string(left[0].Hash) != "new" {
			t.Errorf("left is %+v, want the new one", left)
		}
		return err
	})
}
