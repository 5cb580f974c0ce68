package user_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestALockForARequestReadsItsCallerAndItsAnswer(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		tx.Answers.Add("key", user.Answer{Digest: []byte("digest"), Answer: []byte(`{}`)}, now)
		if err := tx.Blocks.Add(ctx, user.Block{Actor: carol, Direction: user.Outbound, Activity: "https://a.example/block"}, now); err != nil {
			return err
		}
		return tx.Conversations.Join(ctx, h.ID, []vocab.ID{bob}, user.RoleMember, 3)
	})
	for _, tt := range []struct {
		actor                      vocab.ID
		key                        string
		member, blocked, hasAnswer bool
	}{{bob, "key", true, false, true}, {carol, "other key", false, true, false}, {bob, "", true, false, false}} {
		write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
			got, err := tx.Hosted.LockFor(ctx, h.ID, tt.actor, tt.key, now)
			if err != nil || got.URI != h.URI {
				t.Fatalf("LockFor = %v, %v", got, err)
			}
			for _, when := range []string{"with the lock", "later"} {
				m, err := tx.Conversations.FindMember(ctx, h.ID, tt.actor)
				if m.IsIn() != tt.member || err != nil {
					t.Errorf("%s: member %s = %+v, %v", when, tt.actor, m, err)
				}
				blocked, err := tx.Blocks.FindAmong(ctx, []vocab.ID{tt.actor})
				if blocked[tt.actor] != tt.blocked || err != nil {
					t.Errorf("%s: block of %s = %v, %v", when, tt.actor, blocked, err)
				}
				answer, err := tx.Answers.Find(ctx, tt.key, now)
				if (answer != nil) != tt.hasAnswer || err != nil {
					t.Errorf("%s: answer to %q = %v, %v", when, tt.key, answer, err)
				}
				told, err := tx.Hosted.ListAddressees(ctx, h.ID, got.LastSeq+1)
				if len(told) != 2 || told[0].Actor != bob || err != nil {
					t.Errorf("%s: members = %+v, %v, want bob and the host", when, told, err)
				}
				if err := user.Exec(ctx, tx, `SELECT 1`); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func TestALockForARequestDoesNotHideWhatTheTransactionWrites(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	write(t, c, u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Hosted.LockFor(ctx, h.ID, carol, "key", now); err != nil {
			return err
		}
		if err := tx.Conversations.Join(ctx, h.ID, []vocab.ID{carol}, user.RoleMember, 3); err != nil {
			return err
		}
		if m, err := tx.Conversations.FindMember(ctx, h.ID, carol); !m.IsIn() || err != nil {
			t.Errorf("an actor that has joined = %+v, %v", m, err)
		}
		if told, err := tx.Hosted.ListAddressees(ctx, h.ID, 5); len(told) != 3 || err != nil {
			t.Errorf("members = %+v, %v, want carol among three", told, err)
		}
		return nil
	})
}

func TestALookMakesOneQuery(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	h := hosted(t, c, u, 4)
	find := func(ctx context.Context, tx *user.Tx) error {
		got, err := tx.Conversations.Find(ctx, h.ID)
		if err == nil && got.URI != h.URI {
			t.Errorf("Find = %+v", got)
		}
		return err
	}
	if err := c.Look(t.Context(), u, find); err != nil {
		t.Errorf("Look = %v", err)
	}
	err := c.Look(t.Context(), u, func(ctx context.Context, tx *user.Tx) error {
		if err := find(ctx, tx); err != nil {
			return err
		}
		return find(ctx, tx)
	})
	if fault.KindOf(err) != fault.Internal {
		t.Errorf("a second query = %v, want it refused", err)
	}
}
