package user_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
)

// Two kinds of work change the conversation of a pair: its log, when the conversation is upgraded,
// and activities in the inbox. Both lock the row of the conversation before the row of the log, so
// that they cannot deadlock.
func TestALogIsLockedAfterItsConversation(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	u := dbtest.User(t, c, "alice")
	now := time.Now()
	beside := dbtest.SQL(t, c, u)
	isFree := func(table string, id uuid.UUID) (is bool) {
		t.Helper()
		q := `SELECT EXISTS (SELECT FROM (SELECT id FROM ` + table + ` WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED) AS free)`
		if err := beside.QueryRowContext(t.Context(), q, id).Scan(&is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	var pair *user.Conversation
	write(t, c, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if pair, _, err = tx.Pairs.AddNote(ctx, user.PairNote{User: pairUser, Partner: pairPartner, At: now}); err != nil {
			return err
		}
		if err := tx.Pairs.BeginUpgrade(ctx, pair.ID, "urn:uuid:"+uuid.NewString()); err != nil {
			return err
		}
		return tx.Hosted.Add(ctx, user.HostedConversation{ID: pair.ID, GroupInfo: []byte("g")}, now)
	})
	for name, lock := range map[string]func(context.Context, *user.Tx) error{
		"its log": func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Hosted.Lock(ctx, pair.ID)
			return err
		},
		"its partner": func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.Pairs.Find(ctx, pairPartner)
			return err
		},
		"a Note": func(ctx context.Context, tx *user.Tx) error {
			_, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: pairUser, Partner: pairPartner, At: now})
			return err
		},
	} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if err := lock(ctx, tx); err != nil {
				return err
			}
			if isFree("conversations", pair.ID) {
				t.Errorf("by %s the log is locked alone", name)
			}
			return nil
		})
	}
}

// One transaction closes a member's copy of a conversation, and another saves a message of the
// next MLS group. Both lock the rows in the same order. So neither is run again because of a
// deadlock.
func TestACopyIsLockedAfterItsConversation(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	for name, next := range map[string]string{"a message of the next group": "urn:uuid:" + uuid.NewString(), "a message": ""} {
		j := joined(t, c, u)
		j.GroupID = cmp.Or(next, j.GroupID)
		saved, saves, closes := make(chan error, 1), 0, 0
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			closes++
			if _, err := tx.Conversations.FindAt(ctx, j.URI); err != nil {
				return err
			}
			if closes == 1 {
				go func() {
					saved <- c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
						saves++
						_, err := tx.Joined.Save(ctx, j, now)
						return err
					})
				}()
				dbtest.AwaitLock(t, c, u, saved)
			}
			return tx.Conversations.Close(ctx, j.ID, bob, now, nil)
		})
		if err := <-saved; err != nil {
			t.Fatal(err)
		}
		if saves > 1 || closes > 1 {
			t.Errorf("%s was saved %d times, its conversation closed %d times", name, saves, closes)
		}
	}
}
