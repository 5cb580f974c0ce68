package user_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

func entry(seq, epoch int64, kind, content string) user.LogEntry {
	hash := sha256.Sum256([]byte(content))
	return user.LogEntry{Seq: seq, Epoch: epoch, Kind: kind, Sender: bob, Content: []byte(content), Hash: hash[:], At: now}
}

// Constraints of the database allow one commit for an epoch and one number for a message, even
// without the checks in Go.
func TestTheDatabaseRefusesASecondCommitOfAnEpoch(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	add := func(e user.LogEntry) error {
		return c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error { tx.Hosted.AddEntries(h.ID, e); return nil })
	}
	if err := add(entry(1, 4, user.KindCommit, "first")); err != nil {
		t.Fatal(err)
	}
	if err := add(entry(2, 4, user.KindCommit, "second")); !postgres.Violates(err, "mls_log_one_commit") {
		t.Errorf("a second commit of the epoch: %v, want it refused", err)
	}
	if err := add(entry(2, 5, user.KindApplication, "first")); err == nil {
		t.Error("a message was taken twice")
	}
	if err := add(entry(2, 4, user.KindApplication, "words")); err != nil {
		t.Errorf("an application message of the epoch: %v", err)
	}
}

func TestAnEpochAdvancesFromWhereItIsAlone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	for name, change := range map[string]func(*user.HostedConversation){
		"another generation": func(h *user.HostedConversation) { h.Generation++ }, "another term": func(h *user.HostedConversation) { h.Term++ },
		"a past epoch": func(h *user.HostedConversation) { h.Epoch-- }, "a future epoch": func(h *user.HostedConversation) { h.Epoch++ },
	} {
		from := h
		change(&from)
		err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			tx.Hosted.EndEpoch(from, entry(1, 4, user.KindCommit, name), user.NextEpoch{GroupInfo: []byte("other")})
			return nil
		})
		if fault.KindOf(err) != fault.Internal {
			t.Errorf("from %s it advanced: %v", name, err)
		}
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Hosted.EndEpoch(h, entry(1, 4, user.KindCommit, "commit"), user.NextEpoch{GroupInfo: []byte("next")})
		return nil
	})
	if got := stateOf(t, c, u, h.ID); got.Epoch != 5 || got.LastSeq != 1 || !bytes.Equal(got.GroupInfo, []byte("next")) {
		t.Errorf("the conversation is %+v", got)
	}
}

// Pruning old messages does not change a conversation's next number or its epoch.
func TestOldMessagesAreForgottenAndTheirNumbersAreNot(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for seq := range int64(3) {
			e := entry(seq+1, 4, user.KindApplication, string(rune('a'+seq)))
			e.At = now.AddDate(0, 0, int(seq)*20)
			tx.Hosted.AddEntries(h.ID, e)
		}
		welcome := user.Welcome{ID: uuid.New(), Conversation: h.ID, Recipient: bob, KeyPackage: []byte("ref"), Content: []byte("w"), CreatedAt: now}
		tx.Hosted.CountMessages(h.ID, 3, []byte("hash"), now)
		return tx.Welcomes.Add(ctx, welcome)
	})
	for _, dry := range []bool{true, false} {
		did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Messages: now.AddDate(0, 0, 30), DryRun: dry})
		if err != nil || did.Messages != 3 {
			t.Fatalf("dry run %v: %d messages go, %v, want 2 and a Welcome", dry, did.Messages, err)
		}
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		left, err := tx.Hosted.ListLog(ctx, h.ID, 0, 10, 1<<20)
		if len(left) != 1 || left[0].Seq != 3 {
			t.Errorf("what is left is %+v", left)
		}
		return err
	})
	if got := stateOf(t, c, u, h.ID); got.LastSeq != 3 || got.Epoch != 4 {
		t.Errorf("the conversation is %+v", got)
	}
}
