package conversation_test

import (
	"context"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// endFriendship ends alice's friendship with bob, as the inbox does for an activity of bob's that
// ends it.
func (s *scene) endFriendship(ctx context.Context, tx *user.Tx) error {
	if err := tx.HoldAudience(ctx); err != nil {
		return err
	}
	if _, err := tx.Relationships.End(ctx, vocab.FriendOf, bobID, time.Now()); err != nil {
		return err
	}
	_, err := tx.Pairs.Close(ctx, bobID, bobID, s.now())
	return err
}

// While the commit that encrypts the conversation is being stored, the friendship ends. The
// conversation is closed.
func TestAnUpgradeThatIsUnderWayIsClosed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	g := &gate{Cluster: s.store}
	s.registry = s.node(g)
	id := s.pair()
	s.befriend(s.user, bobID)
	s.upgrade(id)
	ended := make(chan error, 1)
	g.setWithin(func() {
		go func() { ended <- s.store.Write(t.Context(), s.user, s.endFriendship) }()
		dbtest.AwaitLock(t, s.store, s.user, ended)
	})
	s.withBob()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if c := s.conversation(id); c.Mode != user.ModeEncrypted || c.ClosedAt == nil {
		t.Errorf("without a friendship the conversation is %+v, want it closed", c)
	}
}

// While alice continues a closed conversation, the friendship ends. Alice's request is refused.
func TestNoConversationIsContinuedOnceTheFriendshipHasEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.pair()
	s.befriend(s.user, bobID)
	s.upgrade(id)
	s.withBob()
	s.write(s.user, s.endFriendship)
	s.befriend(s.user, bobID)
	continued := make(chan error, 1)
	s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
		if err := s.endFriendship(ctx, tx); err != nil {
			return err
		}
		go func() {
			_, err := s.registry.Continue(t.Context(), s.user, id, mlstest.NewGroup(s.alice).Info(s.alice))
			continued <- err
		}()
		dbtest.AwaitLock(t, s.store, s.user, continued)
		return nil
	})
	s.wantRefused("a successor", <-continued, fault.Forbidden, "encryption_not_permitted")
}
