package db_test

import (
	"context"
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// joined makes a conversation that bob hosts, and alice has joined after number 3.
func joined(t *testing.T, c *db.Cluster, u vocab.Username) db.JoinedConversation {
	t.Helper()
	id := uuid.New()
	j := db.JoinedConversation{ID: id, URI: bob + "/conversations/" + vocab.ID(id.String()), Host: bob, GroupID: "urn:uuid:" + uuid.NewString(), LastSeq: 3, WholeSeq: 3,
		Status: db.StatusActive, FormerGroups: []string{}, Confirmed: true}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error { return tx.AddJoined(ctx, j, now) })
	return j
}

func received(j db.JoinedConversation, seq int64, content string) db.InboxEntry {
	hash := sha256.Sum256([]byte(content))
	return db.InboxEntry{Conversation: &j.ID, Group: j.GroupID, Seq: &seq, Kind: db.KindApplication, Sender: bob, Content: []byte(content), Hash: hash[:], ContentAt: -1, At: now}
}

// Numbers come in any order, and the highest is the word of another server: what is missing is
// found by what is here.
func TestALogIsWholeUpToTheFirstMissingNumber(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	for _, step := range []struct{ seq, last, whole int64 }{{5, 5, 3}, {7, 1 << 50, 3}, {4, 1 << 50, 5}, {6, 1 << 50, 7}} {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			if isNew, err := tx.AddInboxEntry(ctx, received(j, step.seq, string(rune('a'+step.seq)))); err != nil || !isNew {
				t.Errorf("message %d: %v, %v", step.seq, isNew, err)
			}
			now, err := tx.JoinedConversation(ctx, j.ID)
			if err != nil {
				return err
			}
			now.LastSeq = step.last
			_, err = tx.SaveJoined(ctx, *now, received(j, 1, "").At)
			return err
		})
		read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			got, err := tx.JoinedConversation(ctx, j.ID)
			if err == nil && got.WholeSeq != step.whole {
				t.Errorf("after message %d it is whole up to %d, want %d", step.seq, got.WholeSeq, step.whole)
			}
			return err
		})
	}
}

func TestAMessageIsKeptOnceInItsConversation(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j, other := joined(t, c, u), joined(t, c, u)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for _, e := range []db.InboxEntry{received(j, 4, "words"), received(j, 5, "words"), received(other, 4, "words"), received(j, 4, "more words")} {
			isNew, err := tx.AddInboxEntry(ctx, e)
			if want := *e.Seq == 4 && string(e.Content) == "words"; err != nil || isNew != want {
				t.Errorf("%q as number %d: %v, %v, want %v", e.Content, *e.Seq, isNew, err, want)
			}
		}
		unplaced := received(j, 1, "early")
		unplaced.Conversation, unplaced.Seq = nil, nil
		for n := range 2 {
			if isNew, err := tx.AddInboxEntry(ctx, unplaced); err != nil || isNew != (n == 0) {
				t.Errorf("a message of an unknown group, time %d: %v, %v", n, isNew, err)
			}
		}
		placed, err := tx.PlaceGroup(ctx, j.ID, j.GroupID, 4)
		if placed != 1 {
			t.Errorf("%d messages found their conversation, want 1", placed)
		}
		return err
	})
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		all, err := tx.InboxLog(ctx, j.ID, 3, 100, 10, 1<<20)
		if len(all) != 2 || *all[1].Seq != 5 || string(all[1].Content) != "early" {
			t.Errorf("the log is %+v", all)
		}
		return err
	})
}

// Nobody becomes an acquaintance by a Welcome that no device has taken.
func TestAConversationIsSharedOnceADeviceHasJoined(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	for _, confirmed := range []bool{false, true} {
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			j.Confirmed = confirmed
			if _, err := tx.SaveJoined(ctx, j, now); err != nil {
				return err
			}
			if err := tx.SetRoster(ctx, j.ID, []vocab.ID{bob, aliceActor}, []string{db.RoleAdmin, db.RoleMember}, 3); err != nil {
				return err
			}
			shares, err := tx.SharesConversation(ctx, bob)
			if shares != confirmed {
				t.Errorf("joined %v: shared %v", confirmed, shares)
			}
			return err
		})
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.SetRoster(ctx, j.ID, []vocab.ID{aliceActor}, []string{db.RoleMember}, 9); err != nil {
			return err
		}
		shares, err := tx.SharesConversation(ctx, bob)
		if shares {
			t.Error("who was removed shares the conversation")
		}
		return err
	})
}
