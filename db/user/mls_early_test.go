package user_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
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
	wantEarly(t, c, u, h, "new")
}

// An early message waits for eight days at most, even if messages are kept for longer.
func TestAnEarlyMessageWaitsForEightDays(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for hash, age := range map[string]time.Duration{"old": 8*24*time.Hour + time.Minute, "new": 8*24*time.Hour - time.Minute} {
			m := user.EarlyMessage{Epoch: h.Epoch, Sender: "https://swicg.example/sam", Content: []byte(hash), Hash: []byte(hash)}
			if _, err := tx.Hosted.KeepEarly(ctx, h, m, now.Add(-age)); err != nil {
				return err
			}
		}
		return nil
	})
	did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Messages: now.Add(-retention30), Deliveries: user.DeliveryRetention{Now: now}})
	if err != nil || did.Messages != 1 {
		t.Errorf("%d messages go, %v, want 1", did.Messages, err)
	}
	wantEarly(t, c, u, h, "new")
}

// wantEarly checks that one early message of the present epoch is left.
func wantEarly(t *testing.T, c *dbtest.Cluster, u vocab.Username, h user.HostedConversation, hash string) {
	t.Helper()
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		left, err := tx.Hosted.TakeEarly(ctx, h)
		if len(left) != 1 || string(left[0].Hash) != hash {
			t.Errorf("left is %+v, want %s", left, hash)
		}
		return err
	})
}
