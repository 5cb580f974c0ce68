package dump_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// commit returns the first message of a log: a commit that ends epoch 4.
func commit(content string) user.LogEntry {
	return user.LogEntry{Seq: 1, Epoch: 4, Kind: user.KindCommit, Sender: dbtest.AliceActor, Content: []byte(content), Hash: []byte(content), At: now}
}

// Epochs may have ended after the backup was made. The restored conversation gets a new term and
// a reset, so that no epoch, log number or generation is assigned twice.
func TestRow31ARestoredConversationBeginsATermWithAReset(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	h := dbtest.Hosted(t, c, u, 4)
	b := take(t, c)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Hosted.EndEpoch(h, commit("lost"), user.NextEpoch{GroupInfo: []byte("after the backup")})
		return nil
	})
	before := dbtest.StateOf(t, c, u, h.ID)
	c = replaced(t, c, cfg, b, u)
	got := dbtest.StateOf(t, c, u, h.ID)
	if got.Epoch != 4 || got.Term != 1 || got.Status != user.StatusResetPending || got.ResetGroupID == "" || got.ResetGroupID == h.GroupID {
		t.Errorf("the restored conversation is %+v", got)
	}
	wantFurther(t, "after the restore", before, got)
	for _, from := range []user.HostedConversation{h, *got} {
		err := c.Write(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
			tx.Hosted.EndEpoch(from, commit("again"), user.NextEpoch{GroupInfo: []byte("again")})
			return nil
		})
		if err == nil {
			t.Error("epoch 4 was handed out again")
		}
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Hosted.Reset(ctx, *got, []byte("new"), now)
	})
	after := dbtest.StateOf(t, c, u, h.ID)
	if after.GroupID != got.ResetGroupID || after.Generation != got.Generation+1 || after.Epoch != 0 || after.Status != user.StatusActive || len(after.FormerGroups) != 1 {
		t.Errorf("after its reset it is %+v", after)
	}

	c = replaced(t, c, cfg, b, u)
	wantFurther(t, "after another restore of the same backup", after, dbtest.StateOf(t, c, u, h.ID))
}

// wantFurther fails the test unless the log number and the generation are higher than they were
// before the restore. JavaScript must be able to represent the log number exactly.
func wantFurther(t *testing.T, what string, before, after *user.HostedConversation) {
	t.Helper()
	if after.LastSeq <= before.LastSeq || after.LastSeq > mostExact || after.Generation <= before.Generation {
		t.Errorf("%s its log is at %d and it is in generation %d, want more than %d and %d", what, after.LastSeq, after.Generation, before.LastSeq, before.Generation)
	}
}

// A restore puts the user's present database aside. The restored conversation continues with
// higher numbers than that database has, even if the clock was set back since.
func TestAConversationGoesOnAboveTheNumbersThatArePutAside(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	h := dbtest.Hosted(t, c, u, 4)
	b := take(t, c)
	if n := number(t, databaseOf(t, c, u), `UPDATE mls_conversations SET last_seq = 1::bigint << 52, generation = 2000000000 RETURNING 1`); n != 1 {
		t.Fatal("there is no conversation")
	}
	before := dbtest.StateOf(t, c, u, h.ID)
	c = replaced(t, c, cfg, b, u)
	after := dbtest.StateOf(t, c, u, h.ID)
	if after.LastSeq < before.LastSeq || after.Generation <= before.Generation { // an equal LastSeq is enough: the next message gets LastSeq + 1
		t.Errorf("it is at %d in generation %d, was at %d in %d", after.LastSeq, after.Generation, before.LastSeq, before.Generation)
	}
}

// This server numbers the messages of a conversation without a host, and the user's programs store
// the numbers. No number is assigned twice.
func TestAConversationWithoutAHostAssignsNoNumberTwice(t *testing.T) {
	t.Parallel()
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	j := user.JoinedConversation{ID: uuid.New(), GroupID: "group", Status: user.StatusActive, LastSeq: 3, WholeSeq: 3, FormerGroups: []string{}, Confirmed: true}
	j.URI = vocab.ID("urn:uuid:" + j.ID.String())
	other := j
	other.ID, other.GroupID, other.Host = uuid.New(), "another group", claimer
	other.URI = claimer + "/conversations/1"
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return errors.Join(tx.Joined.Add(ctx, j, now), tx.Joined.Add(ctx, other, now))
	})
	b := take(t, c)
	number(t, databaseOf(t, c, u), `UPDATE mls_joined SET last_seq = 9, whole_seq = 9 WHERE id = '`+j.ID.String()+`' RETURNING 1`)
	c = replaced(t, c, cfg, b, u)
	dbtest.Read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Joined.Find(ctx, j.ID)
		if err == nil && (got.LastSeq <= 9 || got.WholeSeq != got.LastSeq) {
			t.Errorf("it is at %d and whole up to %d, want both above 9", got.LastSeq, got.WholeSeq)
		}
		if hosted, err := tx.Joined.Find(ctx, other.ID); err != nil || hosted.LastSeq != 3 || hosted.WholeSeq != 3 {
			t.Errorf("a conversation of another host is %+v, %v, want it as it was", hosted, err)
		}
		return err
	})
}

// A conversation of two was encrypted after the backup was made. After the restore it is still
// encrypted, so no Note in it is sent unencrypted.
func TestAConversationOfTwoThatWasEncryptedAfterTheBackupStaysEncrypted(t *testing.T) {
	t.Parallel()
	const bob, carol, dave, erin, frank, grace, heidi vocab.ID = "https://a.example/bob", "https://a.example/carol", "https://a.example/dave", "https://a.example/erin", "https://a.example/frank",
		"https://a.example/grace", "https://a.example/heidi"
	c, cfg := named(t)
	u := dbtest.User(t, c, "alice")
	ids := map[vocab.ID]uuid.UUID{}
	begin := func(partners ...vocab.ID) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			for _, p := range partners {
				pair, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: dbtest.AliceActor, Partner: p, At: now})
				if err != nil {
					return err
				}
				ids[p] = pair.ID
			}
			return nil
		})
	}
	encrypt := func(partner, host vocab.ID) {
		id := vocab.ID(ids[partner].String())
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			group := "urn:uuid:" + string(id)
			err := tx.Pairs.BeginUpgrade(ctx, ids[partner], group)
			if err == nil && host == dbtest.AliceActor {
				err = tx.Hosted.Add(ctx, user.HostedConversation{ID: ids[partner], GroupInfo: []byte("info")}, now)
			} else if err == nil {
				j := user.JoinedConversation{ID: ids[partner], URI: host + "/conversations/" + id, Host: host, GroupID: group, Generation: 2, Epoch: 4, LastSeq: 9, WholeSeq: 9, Status: user.StatusActive, Confirmed: true}
				err = tx.Joined.Add(ctx, j, now)
			}
			return errors.Join(err, tx.Pairs.Upgrade(ctx, user.Conversation{ID: ids[partner], URI: host + "/conversations/" + id, Host: host, GroupID: group}, true, now))
		})
	}
	continued := func(partner vocab.ID) {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			before, err := tx.Pairs.Find(ctx, partner)
			if err != nil {
				return err
			}
			id := uuid.New()
			next := user.Conversation{ID: id, URI: partner + "/conversations/" + vocab.ID(id.String()), Mode: user.ModeEncrypted, Host: partner, Partner: partner, Predecessor: before.URI,
				GroupID: "urn:uuid:" + id.String(), CreatedAt: now}
			j := user.JoinedConversation{ID: id, URI: next.URI, Host: partner, GroupID: next.GroupID, Status: user.StatusActive, Confirmed: true}
			_, err = tx.Pairs.Close(ctx, partner, partner, now)
			if err == nil {
				_, err = tx.Conversations.Continue(ctx, before.ID, next.URI, false, now)
			}
			ids[partner] = id
			return errors.Join(err, tx.Conversations.Add(ctx, next), tx.Joined.Add(ctx, j, now),
				tx.Conversations.Join(ctx, id, []vocab.ID{dbtest.AliceActor, partner}, user.RoleMember, 0))
		})
	}
	begin(bob, dave, erin, grace, heidi)
	encrypt(dave, dbtest.AliceActor)
	encrypt(heidi, heidi)
	b := take(t, c)
	begin(carol, frank)
	encrypt(bob, dbtest.AliceActor)
	encrypt(carol, dbtest.AliceActor)
	encrypt(frank, frank)
	encrypt(grace, grace)
	continued(grace)
	continued(heidi)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Pairs.Close(ctx, dave, dave, now)
		return err
	})
	c = replaced(t, c, cfg, b, u)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for p, host := range map[vocab.ID]vocab.ID{bob: dbtest.AliceActor, carol: dbtest.AliceActor, dave: dbtest.AliceActor, frank: frank, grace: grace, heidi: heidi} {
			got, err := tx.Pairs.Find(ctx, p)
			if err != nil || got == nil {
				t.Errorf("there is no conversation with %s, %v", p, err)
				continue
			}
			if got.Mode != user.ModeEncrypted || got.ClosedAt == nil || got.ID != ids[p] || got.Host != host || got.URI != host+"/conversations/"+vocab.ID(got.ID.String()) {
				t.Errorf("the conversation with %s is %+v, want it encrypted and closed, with its host and URI", p, got)
			}
			if me, err := tx.Conversations.FindMember(ctx, got.ID, dbtest.AliceActor); err != nil || !me.IsIn() {
				t.Errorf("alice cannot continue that with %s, %v", p, err)
			}
			if host == dbtest.AliceActor {
				if h, err := tx.Hosted.Find(ctx, got.ID); err != nil || h == nil || h.Status != user.StatusClosed {
					t.Errorf("the log of the conversation with %s is %+v, %v, want it closed", p, h, err)
				}
			} else if j, err := tx.Joined.Find(ctx, got.ID); err != nil || j == nil || j.Status != user.StatusClosed || j.GroupID != got.GroupID {
				t.Errorf("the copy of the conversation with %s is %+v, %v, want it closed", p, j, err)
			}
		}
		if j, err := tx.Joined.Find(ctx, ids[frank]); err != nil || j == nil || j.Generation != 2 || j.Epoch != 4 || j.LastSeq != 9 || j.WholeSeq != 0 || j.GroupID != "urn:uuid:"+ids[frank].String() {
			t.Errorf("the copy of the conversation with frank is %+v, %v, want it with all messages missing", j, err)
		}
		if got, err := tx.Pairs.Find(ctx, erin); err != nil || got.Mode != user.ModeFederated || got.ClosedAt != nil {
			t.Errorf("the conversation with erin is %+v, %v, want it as it was", got, err)
		}
		return nil
	})
	if h := dbtest.StateOf(t, c, u, ids[dave]); h.Status != user.StatusClosed {
		t.Errorf("the log of the conversation with dave is %s, want it closed", h.Status)
	}
}
