package db_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

const aliceActor vocab.ID = "https://us.example/users/alice"

// hosted makes a conversation that alice hosts, with bob in it, at an epoch.
func hosted(t *testing.T, c *db.Cluster, u vocab.Username, epoch int64) db.HostedConversation {
	t.Helper()
	id := uuid.New()
	h := db.HostedConversation{ID: id, URI: aliceActor + "/conversations/" + vocab.ID(id.String()), GroupID: "urn:uuid:" + uuid.NewString(), Epoch: epoch, Status: db.StatusActive, GroupInfo: []byte("info"), FormerGroups: []string{}}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		err := tx.AddConversation(ctx, db.Conversation{ID: id, URI: h.URI, Mode: db.ModeEncrypted, Host: aliceActor, GroupID: h.GroupID, CreatedAt: now})
		if err == nil {
			err = tx.HostConversation(ctx, h, now)
		}
		if err == nil {
			err = tx.JoinConversation(ctx, id, []vocab.ID{aliceActor}, db.RoleAdmin, 0)
		}
		if err == nil {
			err = tx.JoinConversation(ctx, id, []vocab.ID{bob}, db.RoleMember, 0)
		}
		return err
	})
	return h
}

func stateOf(t *testing.T, c *db.Cluster, u vocab.Username, id uuid.UUID) (h *db.HostedConversation) {
	t.Helper()
	read(t, c, u, func(ctx context.Context, tx *db.Tx) (err error) {
		h, err = tx.HostedConversation(ctx, id)
		return err
	})
	return h
}

func entry(seq, epoch int64, kind, content string) db.LogEntry {
	hash := sha256.Sum256([]byte(content))
	return db.LogEntry{Seq: seq, Epoch: epoch, Kind: kind, Sender: bob, Content: []byte(content), Hash: hash[:], At: now}
}

// Whatever code comes before them, the constraints keep an epoch from having two commits, and a
// message from having two numbers.
func TestTheDatabaseRefusesASecondCommitOfAnEpoch(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	add := func(e db.LogEntry) error {
		return c.Write(t.Context(), u, func(ctx context.Context, tx *db.Tx) error { return tx.AddLogEntries(ctx, h.ID, e) })
	}
	if err := add(entry(1, 4, db.KindCommit, "first")); err != nil {
		t.Fatal(err)
	}
	if err := add(entry(2, 4, db.KindCommit, "second")); !postgres.Violates(err, "mls_log_one_commit") {
		t.Errorf("a second commit of the epoch: %v, want it refused", err)
	}
	if err := add(entry(2, 5, db.KindApplication, "first")); err == nil {
		t.Error("a message was taken twice")
	}
	if err := add(entry(2, 4, db.KindApplication, "words")); err != nil {
		t.Errorf("an application message of the epoch: %v", err)
	}
}

func TestAnEpochAdvancesFromWhereItIsAlone(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	for name, change := range map[string]func(*db.HostedConversation){
		"another generation": func(h *db.HostedConversation) { h.Generation++ }, "another term": func(h *db.HostedConversation) { h.Term++ },
		"a past epoch": func(h *db.HostedConversation) { h.Epoch-- }, "a future epoch": func(h *db.HostedConversation) { h.Epoch++ },
	} {
		from := h
		change(&from)
		write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
			advanced, err := tx.AdvanceEpoch(ctx, from, []byte("hash"), []byte("other"), now)
			if advanced {
				t.Errorf("it advanced from %s", name)
			}
			return err
		})
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		advanced, err := tx.AdvanceEpoch(ctx, h, []byte("hash"), []byte("next"), now)
		if !advanced {
			t.Error("it did not advance from its epoch")
		}
		return err
	})
	if got := stateOf(t, c, u, h.ID); got.Epoch != 5 || got.LastSeq != 1 || !bytes.Equal(got.GroupInfo, []byte("next")) {
		t.Errorf("the conversation is %+v", got)
	}
}

// After the backup more epochs may have been handed out: none is handed out twice.
func TestARestoredConversationBeginsATermWithAReset(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	h := hosted(t, c, u, 4)
	b := take(t, c)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		_, err := tx.AdvanceEpoch(ctx, h, []byte("hash"), []byte("after the backup"), now)
		return err
	})
	c.Close()
	c = open(t, cfg)
	restoring(t, c, func(r *db.Restoration) {
		build(t, r, b, u)
		aside, err := r.Commit(t.Context(), u, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run(t, "postgres", `DROP DATABASE "`+aside+`"`) })
	})
	got := stateOf(t, c, u, h.ID)
	if got.Epoch != 4 || got.Term != 1 || got.Status != db.StatusResetPending || got.ResetGroupID == "" || got.ResetGroupID == h.GroupID {
		t.Errorf("the restored conversation is %+v", got)
	}
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for _, from := range []db.HostedConversation{h, *got} {
			if advanced, err := tx.AdvanceEpoch(ctx, from, []byte("hash"), []byte("again"), now); advanced || err != nil {
				t.Errorf("epoch 4 was handed out again: %v", err)
			}
		}
		return tx.ResetConversation(ctx, *got, []byte("new"), now)
	})
	if after := stateOf(t, c, u, h.ID); after.GroupID != got.ResetGroupID || after.Generation != 1 || after.Epoch != 0 || after.Status != db.StatusActive || len(after.FormerGroups) != 1 {
		t.Errorf("after its reset it is %+v", after)
	}
}

// A conversation whose messages are forgotten goes on where it was.
func TestOldMessagesAreForgottenAndTheirNumbersAreNot(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		for seq := range int64(3) {
			e := entry(seq+1, 4, db.KindApplication, string(rune('a'+seq)))
			e.At = now.AddDate(0, 0, int(seq)*20)
			if err := tx.AddLogEntries(ctx, h.ID, e); err != nil {
				return err
			}
		}
		welcome := db.Welcome{ID: uuid.New(), Conversation: h.ID, Recipient: bob, KeyPackage: []byte("ref"), Content: []byte("w"), CreatedAt: now}
		if err := tx.AddWelcome(ctx, welcome); err != nil {
			return err
		}
		return tx.CountMessages(ctx, h.ID, 3, []byte("hash"), now)
	})
	for _, dry := range []bool{true, false} {
		did, err := c.Prune(t.Context(), u, db.Pruning{Me: aliceActor, Messages: now.AddDate(0, 0, 30), DryRun: dry})
		if err != nil || did.Messages != 3 {
			t.Fatalf("dry run %v: %d messages go, %v, want 2 and a Welcome", dry, did.Messages, err)
		}
	}
	read(t, c, u, func(ctx context.Context, tx *db.Tx) error {
		left, err := tx.Log(ctx, h.ID, 0, 10, 1<<20)
		if len(left) != 1 || left[0].Seq != 3 {
			t.Errorf("what is left is %+v", left)
		}
		return err
	})
	if got := stateOf(t, c, u, h.ID); got.LastSeq != 3 || got.Epoch != 4 {
		t.Errorf("the conversation is %+v", got)
	}
}
