package user_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// joined makes a conversation that bob hosts. Alice joins it after message 3.
func joined(t *testing.T, c *dbtest.Cluster, u vocab.Username) user.JoinedConversation {
	t.Helper()
	id := uuid.New()
	j := user.JoinedConversation{ID: id, URI: bob + "/conversations/" + vocab.ID(id.String()), Host: bob, GroupID: "urn:uuid:" + uuid.NewString(), LastSeq: 3, WholeSeq: 3,
		Status: user.StatusActive, FormerGroups: []string{}, Confirmed: true}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Joined.Add(ctx, j, now) })
	return j
}

func received(j user.JoinedConversation, seq int64, content string) user.InboxEntry {
	hash := sha256.Sum256([]byte(content))
	return user.InboxEntry{Conversation: &j.ID, Group: j.GroupID, Seq: &seq, Kind: user.KindApplication, Sender: bob, Content: []byte(content), Hash: hash[:], ContentAt: -1, At: now}
}

// Messages arrive in any order, and only bob's server says which number is the highest. So the
// engine finds missing messages by the numbers of the messages that it has.
func TestALogIsWholeUpToTheFirstMissingNumber(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	for _, step := range []struct{ seq, last, whole int64 }{{5, 5, 3}, {7, 1 << 50, 3}, {4, 1 << 50, 5}, {6, 1 << 50, 7}} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if isNew, err := tx.Messages.Add(ctx, received(j, step.seq, string(rune('a'+step.seq)))); err != nil || !isNew {
				t.Errorf("message %d: %v, %v", step.seq, isNew, err)
			}
			now, err := tx.Joined.Find(ctx, j.ID)
			if err != nil {
				return err
			}
			now.LastSeq = step.last
			_, err = tx.Joined.Save(ctx, *now, received(j, 1, "").At)
			return err
		})
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			got, err := tx.Joined.Find(ctx, j.ID)
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
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, e := range []user.InboxEntry{received(j, 4, "words"), received(j, 5, "words"), received(other, 4, "words"), received(j, 4, "more words")} {
			isNew, err := tx.Messages.Add(ctx, e)
			if want := *e.Seq == 4 && string(e.Content) == "words"; err != nil || isNew != want {
				t.Errorf("%q as number %d: %v, %v, want %v", e.Content, *e.Seq, isNew, err, want)
			}
		}
		unplaced := received(j, 1, "early")
		unplaced.Conversation, unplaced.Seq = nil, nil
		for n := range 2 {
			if isNew, err := tx.Messages.Add(ctx, unplaced); err != nil || isNew != (n == 0) {
				t.Errorf("a message of an unknown group, time %d: %v, %v", n, isNew, err)
			}
		}
		placed, err := tx.Joined.PlaceGroup(ctx, j.ID, j.GroupID, nil, 4)
		if placed != 1 {
			t.Errorf("%d messages found their conversation, want 1", placed)
		}
		return err
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		all, err := tx.Messages.ListLog(ctx, j.ID, 3, 100, 10, 1<<20)
		if len(all) != 2 || *all[1].Seq != 5 || string(all[1].Content) != "early" {
			t.Errorf("the log is %+v", all)
		}
		return err
	})
}

// A Welcome from bob does not make bob an acquaintance until one of alice's devices has joined.
func TestAConversationIsSharedOnceADeviceHasJoined(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return user.Exec(ctx, tx, `UPDATE conversations SET confirmed = false`)
	})
	for _, confirmed := range []bool{false, true} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if confirmed {
				if err := tx.Joined.Confirm(ctx, j.ID, bob); err != nil {
					return err
				}
			}
			if _, err := tx.Joined.SetRoster(ctx, j.ID, []vocab.ID{bob, dbtest.AliceActor}, []string{user.RoleAdmin, user.RoleMember}, 3); err != nil {
				return err
			}
			shares, err := tx.Conversations.IsShared(ctx, bob)
			if shares != confirmed {
				t.Errorf("joined %v: shared %v", confirmed, shares)
			}
			return err
		})
	}
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		gone, err := tx.Joined.SetRoster(ctx, j.ID, []vocab.ID{dbtest.AliceActor}, []string{user.RoleMember}, 9)
		if err != nil || !slices.Equal(gone, []vocab.ID{bob}) {
			t.Errorf("gone are %v, %v; want bob", gone, err)
		}
		shares, err := tx.Conversations.IsShared(ctx, bob)
		if shares {
			t.Error("who was removed shares the conversation")
		}
		return err
	})
}

// An invitation is forgotten together with its Welcome, because nobody can join without the
// Welcome.
func TestAnInvitationThatHasLapsedIsForgotten(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	lapsed, waiting, taken, named := joined(t, c, u), joined(t, c, u), joined(t, c, u), joined(t, c, u)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if err := user.Exec(ctx, tx, `UPDATE conversations SET confirmed = false`); err != nil {
			return err
		}
		pair, _, err := tx.Pairs.AddNote(ctx, user.PairNote{User: dbtest.AliceActor, Partner: bob, At: now})
		if err == nil {
			_, err = tx.Conversations.Continue(ctx, pair.ID, named.URI, false, now)
		}
		if err == nil {
			err = tx.Joined.Confirm(ctx, taken.ID, bob)
		}
		for n, w := range []user.Welcome{{Conversation: lapsed.ID, CreatedAt: now}, {Conversation: waiting.ID, CreatedAt: now.AddDate(0, 0, 10)}} {
			if err != nil {
				break
			}
			w.ID, w.Recipient, w.KeyPackage, w.Content = uuid.New(), dbtest.AliceActor, []byte{byte(n)}, []byte("w")
			err = tx.Welcomes.Add(ctx, w)
		}
		return err
	})
	for _, dry := range []bool{true, false} {
		did, err := c.Prune(t.Context(), u, user.Pruning{Me: dbtest.AliceActor, Messages: now.AddDate(0, 0, 5), DryRun: dry})
		if want := map[bool]int{true: 1, false: 2}[dry]; err != nil || did.Messages != want {
			t.Fatalf("dry run %v: %d go, %v, want a Welcome, and its invitation once that is gone", dry, did.Messages, err)
		}
	}
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for what, id := range map[string]uuid.UUID{"that waits": waiting.ID, "that a device took": taken.ID, "that continues another one": named.ID} {
			if got, err := tx.Joined.Find(ctx, id); err != nil || got == nil {
				t.Errorf("the conversation %s is gone, %v", what, err)
			}
		}
		got, err := tx.Joined.Find(ctx, lapsed.ID)
		if got != nil {
			t.Errorf("the lapsed one is %+v", got)
		}
		return err
	})
}

// A transaction reads a conversation, and saves it later. Another transaction commits a join or a
// close in between. The save does not undo that.
func TestAMessageUndoesNeitherThatADeviceHasJoinedNorTheEnd(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		return user.Exec(ctx, tx, `UPDATE conversations SET confirmed = false`)
	})
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		before, err := tx.Joined.Find(ctx, j.ID)
		if err != nil {
			return err
		}
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			if err := tx.Joined.Confirm(ctx, j.ID, bob); err != nil {
				return err
			}
			return tx.Conversations.Close(ctx, j.ID, bob, now, nil)
		})
		before.LastSeq, before.ResetGroupID = 9, "urn:uuid:"+uuid.NewString()
		_, err = tx.Joined.Save(ctx, *before, now)
		return err
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		after, err := tx.Joined.Find(ctx, j.ID)
		if err == nil && (!after.Confirmed || after.Status != user.StatusClosed || after.ResetGroupID != "" || after.LastSeq != 9) {
			t.Errorf("after the message the conversation is %+v", *after)
		}
		return err
	})
}

// A commit that arrives before its host has ordered it may be rejected, so the user's devices do
// not see it yet. Once the host has ordered the commit, the devices read it after the messages
// that they have already read.
func TestACommitIsHeldUntilItsHostHasPutItInOrder(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	commit, words := received(j, 4, "commit"), received(j, 5, "words")
	commit.Kind = user.KindCommit
	early, said := commit, words
	early.Seq, said.Seq = nil, nil
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for _, e := range []user.InboxEntry{early, said} {
			if _, err := tx.Messages.Add(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
	want := func(what string, contents ...string) {
		t.Helper()
		var got []string
		read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			all, err := tx.Messages.List(ctx, 0, 10, 1<<20)
			for _, e := range all {
				got = append(got, string(e.Content))
			}
			newest, newestErr := tx.Messages.ListNewest(ctx, 0, 10, 1<<20)
			if n, countErr := tx.Messages.Count(ctx); countErr != nil || newestErr != nil || int(n) != len(all) || len(newest) != len(all) {
				t.Errorf("%s: %d of %d messages are counted: %v, %v", what, n, len(all), countErr, newestErr)
			}
			return err
		})
		if !slices.Equal(got, contents) {
			t.Errorf("%s: %q, want %q", what, got, contents)
		}
	}
	want("before the host's word", "words")
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		like, err := tx.Messages.FindLike(ctx, commit)
		if err != nil || len(like) != 1 {
			t.Fatalf("%d messages are like it, %v", len(like), err)
		}
		return tx.Messages.Place(ctx, like[0], commit)
	})
	want("after it", "words", "commit")
}

// A message waits for its number, and the user blocks its sender meanwhile. The message is then
// marked as blocked.
func TestAMessageIsMarkedIfItsSenderWasBlockedBeforeItWasPutInOrder(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j := joined(t, c, u)
	e := received(j, 4, "words")
	early := e
	early.Seq = nil
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Messages.Add(ctx, early); err != nil {
			return err
		}
		like, err := tx.Messages.FindLike(ctx, e)
		if err != nil || len(like) != 1 || like[0].Blocked {
			t.Fatalf("%+v are like it, %v", like, err)
		}
		e.Blocked = true
		return tx.Messages.Place(ctx, like[0], e)
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if like, err := tx.Messages.FindLike(ctx, e); err != nil || len(like) != 1 || !like[0].Blocked {
			t.Errorf("%+v are like it, %v; want it marked", like, err)
		}
		return nil
	})
}

// For a conversation that another server hosts, the operator sees how many ordered messages of
// each kind are stored.
func TestTheMessagesOfAJoinedConversationAreCounted(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	j, other := joined(t, c, u), joined(t, c, u)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n, kind := range []string{user.KindCommit, user.KindProposal, user.KindApplication, user.KindApplication} {
			e := received(j, int64(n)+4, kind+string(rune('a'+n)))
			e.Kind = kind
			if _, err := tx.Messages.Add(ctx, e); err != nil {
				return err
			}
		}
		unordered := received(j, 0, "unordered")
		unordered.Kind, unordered.Seq = user.KindCommit, nil
		if _, err := tx.Messages.Add(ctx, unordered); err != nil {
			return err
		}
		_, err := tx.Messages.Add(ctx, received(other, 4, "elsewhere"))
		return err
	})
	read(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Conversations.FindCounts(ctx, j.ID)
		if want := (user.LogCounts{Commits: 1, Proposals: 1, Applications: 2}); err != nil || got.LogCounts != want {
			t.Errorf("counted %+v, %v; want %+v", got, err, want)
		}
		return nil
	})
}
