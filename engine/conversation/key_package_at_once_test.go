package conversation_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// welcome returns a Welcome from bob for alice's key package. The Welcome does not name its
// conversation, as the Welcomes of some servers do not.
func welcome(ref []byte) user.Welcome {
	return user.Welcome{ID: uuid.New(), Recipient: aliceID, KeyPackage: ref, Content: []byte("welcome"), CreatedAt: time.Now(), Sender: bobID, Object: bobID + "/objects/1"}
}

// Two claims run at the same time. After each of them only a few packages are left. The user gets
// one event.
func TestTwoClaimsAtOnceTellTheUserOnce(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	s.follow(carolID)
	s.publish("phone", 5, true)
	second := make(chan error, 1)
	var begun atomic.Bool
	g.setWithin(func() {
		if begun.CompareAndSwap(false, true) {
			go func() { _, err := s.registry.Claim(t.Context(), s.user, carolID); second <- err }()
			dbtest.AwaitLock(t, s.store, s.user, second)
		}
	})
	if _, err := s.registry.Claim(t.Context(), s.user, bobID); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	if n := s.events()["keypackages.low"]; n != 1 {
		t.Errorf("alice was told %d times that few packages are left, want once", n)
	}
}

// While a Welcome for a package is being stored, the package is revoked. The Welcome is removed,
// too.
func TestARevocationTakesTheWelcomeThatIsJustComing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	published, err := s.registry.Publish(t.Context(), s.user, []conversation.NewPackage{{Device: "laptop", Content: mlstest.NewDevice(aliceID, time.Now()).Package}})
	if err != nil {
		t.Fatal(err)
	}
	revoked := make(chan error, 1)
	s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
		if is, err := tx.KeyPackages.Has(ctx, published[0].Ref); err != nil || !is {
			t.Fatal(is, err)
		}
		go func() { revoked <- s.registry.Revoke(t.Context(), s.user, published[0].ID) }()
		dbtest.AwaitLock(t, s.store, s.user, revoked)
		_, err := tx.Welcomes.Take(ctx, welcome(published[0].Ref))
		return err
	})
	if err := <-revoked; err != nil {
		t.Fatal(err)
	}
	if waiting, err := s.registry.Welcomes(t.Context(), s.user, ""); err != nil || len(waiting) != 0 {
		t.Errorf("%d welcomes wait, %v", len(waiting), err)
	}
}

// While the first message of a group is being stored, a device confirms its Welcome to the group.
// The two transactions do not deadlock, and neither of them is run again.
func TestAConfirmationAndAMessageLockInOneOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	store := &reruns{Store: s.store}
	s.registry = s.node(store)
	w := welcome([]byte("ref"))
	s.write(s.user, func(ctx context.Context, tx *user.Tx) error { _, err := tx.Welcomes.Take(ctx, w); return err })
	confirmed, runs := make(chan error, 1), 0
	s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
		if runs++; runs > 1 {
			return nil
		}
		if err := tx.Messages.Lock(ctx); err != nil {
			return err
		}
		go func() { confirmed <- s.registry.ConfirmWelcome(t.Context(), s.user, w.ID, "urn:uuid:group") }()
		dbtest.AwaitLock(t, s.store, s.user, confirmed)
		return tx.Welcomes.Place(ctx, w.ID, s.at.ID)
	})
	if err := <-confirmed; err != nil {
		t.Fatal(err)
	}
	if runs > 1 || store.n.Load() > 0 {
		t.Errorf("the message was stored %d times, the confirmation %d times more", runs, store.n.Load())
	}
}

// Several groups may use one package of last resort. Each different Welcome for the package is
// stored, even if the Welcome is confirmed with a group that another Welcome was confirmed with.
func TestASecondWelcomeForAPackageOfLastResortIsKept(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var all []user.Welcome
	for _, content := range []string{"first", "again", "another group's"} {
		w := welcome([]byte("last resort"))
		w.Content = []byte(content)
		all = append(all, w)
	}
	s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
		for _, w := range all {
			if isNew, err := tx.Welcomes.Take(ctx, w); err != nil || !isNew {
				t.Errorf("the Welcome %q is new: %v, %v", w.Content, isNew, err)
			}
		}
		same := all[0]
		same.ID = uuid.New()
		if isNew, err := tx.Welcomes.Take(ctx, same); err != nil || isNew {
			t.Errorf("the same Welcome that comes again is new: %v, %v", isNew, err)
		}
		return nil
	})
	for range 2 {
		for n, group := range []string{"urn:uuid:group", "urn:uuid:group", "urn:uuid:other"} {
			if err := s.registry.ConfirmWelcome(t.Context(), s.user, all[n].ID, group); err != nil {
				t.Errorf("the confirmation of the Welcome %q: %v", all[n].Content, err)
			}
		}
	}
	if waiting, err := s.registry.Welcomes(t.Context(), s.user, ""); err != nil || len(waiting) != 0 {
		t.Errorf("%d Welcomes wait, %v", len(waiting), err)
	}
}
