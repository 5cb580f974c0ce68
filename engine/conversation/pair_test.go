package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// befriend makes a user and an actor friends.
func (s *scene) befriend(u vocab.Username, actor vocab.ID) {
	s.Helper()
	s.write(u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: actor, Type: vocab.FriendOf, Status: user.Accepted, Activity: actor + "/offer", Direction: user.Inbound}, s.now())
	})
}

func (s *scene) write(u vocab.Username, work func(context.Context, *user.Tx) error) {
	s.Helper()
	if err := s.store.Write(s.Context(), u, work); err != nil {
		s.Fatal(err)
	}
}

// pair begins alice's conversation of two with bob. It is not encrypted yet.
func (s *scene) pair() uuid.UUID {
	s.Helper()
	c, made, err := s.registry.Open(s.Context(), s.user, bobID)
	if err != nil || !made {
		s.Fatalf("made: %v, %v", made, err)
	}
	return c.ID
}

// upgrade gives the conversation a new group. The group has only alice's device.
func (s *scene) upgrade(id uuid.UUID) {
	s.Helper()
	s.group = mlstest.NewGroup(s.alice)
	v, err := s.registry.Upgrade(s.Context(), s.user, id, s.group.Info(s.alice))
	if err != nil {
		s.Fatal(err)
	}
	if v.ID != id || v.Epoch != 0 {
		s.Errorf("it is %+v", v)
	}
	s.at.ID = id
}

func (s *scene) conversation(id uuid.UUID) *user.Conversation {
	s.Helper()
	c, err := s.registry.Find(s.Context(), s.user, id)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// kinds returns the kinds of the entries in a conversation's timeline. The newest comes first.
func (s *scene) kinds(u vocab.Username, id uuid.UUID) (kinds []string) {
	s.Helper()
	all, _, err := s.registry.Timeline(s.Context(), u, id, user.TimelineEnd, 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range all {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// The commit that adds bob encrypts the conversation, if the relationship permits encryption.
// After that, a second upgrade is refused, and so are Notes.
func TestAConversationOfTwoIsUpgradedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.pair()
	group := mlstest.NewGroup(s.alice)
	_, err := s.registry.Upgrade(t.Context(), s.user, id, group.Info(s.alice))
	s.wantRefused("an upgrade with a stranger", err, fault.Forbidden, "encryption_not_permitted")
	s.befriend(s.user, bobID)
	s.upgrade(id)
	s.upgrade(id) // bob never joined the first group; a new group replaces it
	if c := s.conversation(id); c.Mode != user.ModeFederated || conversation.CheckOpen(c) != nil {
		t.Errorf("before bob is in it the conversation is %+v", c)
	}
	_, err = s.send(s.alice, s.group.Message())
	s.wantRefused("ciphertext for nobody", err, fault.Unprocessable, "not_upgraded")
	carol := mlstest.NewDevice(carolID, time.Now())
	refused, _ := s.request(s.alice, s.group, mlstest.Change{Add: []*mlstest.Device{s.bob, carol}})
	_, err = s.registry.Commit(t.Context(), s.at, refused)
	s.wantRefused("a third actor", err, fault.Unprocessable, "pair_only")
	s.withBob()
	c := s.conversation(id)
	if c.Mode != user.ModeEncrypted || c.UpgradedAt == nil || c.GroupID != s.group.ID {
		t.Errorf("the conversation is %+v", c)
	}
	s.wantRefused("a Note", conversation.CheckOpen(c), fault.Unprocessable, "conversation_encrypted")
	if n := s.events()["conversation.upgraded"]; n != 1 {
		t.Errorf("%d events tell of the upgrade", n)
	}
	_, err = s.registry.Upgrade(t.Context(), s.user, id, mlstest.NewGroup(s.alice).Info(s.alice))
	s.wantRefused("a second upgrade", err, fault.Conflict, "already_encrypted")
	if _, err := s.send(s.bob, s.group.Message()); err != nil {
		t.Error(err)
	}
	if kinds := s.kinds(s.user, id); len(kinds) != 3 || kinds[0] != user.KindApplication || kinds[1] != user.EntryUpgraded || kinds[2] != user.KindCommit {
		t.Errorf("the timeline is %q", kinds)
	}
}

// Row 25 of docs/conversations.md, Cases and their tests: when the relationship ends, the
// conversation is closed to ciphertext and to Notes. Its entries can still be read. If the two
// become friends again, a new conversation may continue it.
func TestRow25TheRelationshipIsLostMidChat(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.pair()
	s.befriend(s.user, bobID)
	s.upgrade(id)
	s.withBob()
	s.publish("phone", 3, false)
	if _, err := s.registry.Claim(t.Context(), s.user, bobID); err != nil {
		t.Errorf("a friend's claim: %v", err)
	}
	s.write(s.user, s.endFriendship)
	_, err := s.registry.Claim(t.Context(), s.user, bobID)
	s.wantRefused("a former friend's claim", err, fault.Forbidden, "claim_refused")
	_, err = s.send(s.alice, s.group.Message())
	s.wantConflict("ciphertext", err, "conversation_closed")
	_, err = s.send(s.bob, s.group.Message())
	s.wantConflict("ciphertext of the other", err, "conversation_closed")
	c := s.conversation(id)
	s.wantRefused("a Note", conversation.CheckOpen(c), fault.Unprocessable, "conversation_encrypted")
	if kinds := s.kinds(s.user, id); kinds[0] != user.EntryClosed {
		t.Errorf("the timeline is %q", kinds)
	}

	next := mlstest.NewGroup(s.alice)
	_, err = s.registry.Continue(t.Context(), s.user, id, next.Info(s.alice))
	s.wantRefused("a successor with a stranger", err, fault.Forbidden, "encryption_not_permitted")
	s.befriend(s.user, bobID)
	v, err := s.registry.Continue(t.Context(), s.user, id, next.Info(s.alice))
	if err != nil {
		t.Fatal(err)
	}
	before, after := s.conversation(id), s.conversation(v.ID)
	if before.Successor != after.URI || after.Predecessor != before.URI || after.Partner != bobID || conversation.CheckOpen(after) == nil {
		t.Errorf("after %+v comes %+v", before, after)
	}
	_, err = s.registry.Continue(t.Context(), s.user, id, mlstest.NewGroup(s.alice).Info(s.alice))
	s.wantRefused("a second successor", err, fault.Conflict, "successor_exists")
	_, err = s.registry.Continue(t.Context(), s.user, v.ID, mlstest.NewGroup(s.alice).Info(s.alice))
	s.wantRefused("a successor of one that goes on", err, fault.Conflict, "conversation_open")
}

// Carol has a conversation with alice, and alice's server upgrades it. Carol's conversation
// becomes carol's copy of the encrypted one.
func TestTheOtherSideJoinsWhatItsConversationBecomes(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	carol := dbtest.User(t, s.store, "carol")
	me := actors{}.ID(carol)
	own, _, err := s.registry.Open(t.Context(), carol, aliceID)
	if err != nil {
		t.Fatal(err)
	}
	isPair := true
	join := func(uri vocab.ID, members ...vocab.ID) (id uuid.UUID, is bool) {
		t.Helper()
		s.write(carol, func(ctx context.Context, tx *user.Tx) (err error) {
			j := &user.JoinedConversation{URI: uri, Host: aliceID, GroupID: "urn:uuid:" + uuid.NewString()}
			is, err = conversation.JoinPair(ctx, tx, conversation.Arrival{Me: me, Now: s.now(), EncryptedChat: audience.Rule(registry.DefaultPermissions().EncryptedChat)}, j, isPair, members)
			id = j.ID
			return err
		})
		return id, is
	}
	const first, second = aliceID + "/conversations/1", aliceID + "/conversations/2"
	if _, is := join(first, aliceID, me); is {
		t.Error("a stranger's group became the conversation")
	}
	s.befriend(carol, aliceID)
	if _, is := join(first, aliceID, me, bobID); is {
		t.Error("a group of three became the conversation")
	}
	isPair = false
	if _, is := join(first, me, aliceID); is {
		t.Error("another group of the two became the conversation")
	}
	isPair = true
	if id, is := join(first, me, aliceID); !is || id != own.ID {
		t.Errorf("the conversation joined is %v, %v", id, is)
	}
	if _, is := join(second, me, aliceID); is {
		t.Error("a second group became the conversation")
	}
	held, err := s.registry.Held(t.Context(), carol, own.ID)
	if err != nil || held.Mode != user.ModeEncrypted || held.URI != first || held.Host != aliceID || len(held.Members) != 2 || held.Members[0].Role == held.Members[1].Role {
		t.Errorf("it is %+v, %v", held, err)
	}
	for _, m := range held.Members {
		if isAdmin := m.Role == user.RoleAdmin; isAdmin != (m.Actor == aliceID) {
			t.Errorf("%s is %s", m.Actor, m.Role)
		}
	}
	s.write(carol, func(ctx context.Context, tx *user.Tx) error {
		closed, err := tx.Conversations.CloseHostedBy(ctx, aliceID, s.now(), nil)
		if len(closed) != 1 {
			t.Errorf("closed: %q", closed)
		}
		return err
	})
	id, is := join(second, me, aliceID)
	if !is || id == own.ID {
		t.Errorf("after the end of the first the conversation joined is %v, %v", id, is)
	}
	if kinds := s.kinds(carol, own.ID); len(kinds) != 3 || kinds[0] != user.EntrySuccessor || kinds[1] != user.EntryClosed || kinds[2] != user.EntryUpgraded {
		t.Errorf("the timeline is %q", kinds)
	}
}

// An invitation of a stranger that the user's rule permits is told as a stranger's, within the
// budget of strangers. One of a friend is told as a contact's.
func TestAnInvitationIsToldWithTheTrustInItsHost(t *testing.T) {
	t.Parallel()
	for kind, trust := range map[string]string{user.Follower: "stranger", user.FriendOf: "contact"} {
		for _, isWithheld := range []bool{false, true} {
			s := newScene(t)
			s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: bobID, Type: kind, Status: user.Accepted, Activity: bobID + "/1"}, s.now())
			})
			var asked, told []string
			a := conversation.Arrival{Me: aliceID, Now: s.now(), EncryptedChat: audience.Rule{Any: []string{vocab.FriendOf, "follower"}}, Tells: func(trust string) bool {
				asked = append(asked, trust)
				return !isWithheld
			}}
			s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
				for n := range 2 { // the second group continues the first
					j := &user.JoinedConversation{URI: bobID + "/conversations/" + vocab.ID(fmt.Sprint(n)), Host: bobID, GroupID: "urn:uuid:" + uuid.NewString()}
					if is, err := conversation.JoinUpgrade(ctx, tx, a, j, bobID+"/conversations/0"); err != nil || !is {
						t.Fatalf("group %d is joined: %t, %v", n, is, err)
					}
				}
				return nil
			})
			s.eachEvent(func(e user.Event) {
				var said struct{ Trust string }
				if err := json.Unmarshal(e.Payload, &said); err != nil {
					t.Fatal(err)
				}
				told = append(told, e.Type+" "+said.Trust)
			})
			want := []string{"conversation.upgraded " + trust, "conversation.closed " + trust, "conversation.continued " + trust}
			if isWithheld {
				want = nil
			}
			if !slices.Equal(told, want) || !slices.Equal(asked, []string{trust, trust, trust}) {
				t.Errorf("of a %s, withheld: %t, is told %q, and %q was asked, want %q", kind, isWithheld, told, asked, want)
			}
		}
	}
}

// Row 24 of docs/conversations.md, Cases and their tests: devices lose their state again and
// again. The second rejoin of each is refused. So each member costs the others at most one epoch
// in five minutes.
func TestRow24ARejoinStormIsBounded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const members = 20
	var devices []*mlstest.Device
	for n := range members {
		devices = append(devices, mlstest.NewDevice(fmt.Sprintf("https://peer.example/users/m%d", n), time.Now()))
	}
	s.commit(s.alice, mlstest.Change{Add: devices})
	for round := range 3 {
		for n, lost := range devices {
			again := mlstest.NewDevice(lost.Identity, time.Now())
			_, err := s.rejoin(again, lost)
			if round > 0 {
				s.wantRefused("a device that comes back too soon", err, fault.RateLimited, "rejoin_cooldown")
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			devices[n] = again
		}
	}
	if v := s.view(); v.Epoch != 1+members || len(v.Members) != 1+members {
		t.Errorf("after the storm there are %d members at epoch %d", len(v.Members), v.Epoch)
	}
}
