package conversation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Both sides upgrade at the same time. The conversation with the smaller URI stays open. The other
// one is closed: it can still be read, and it names the open one as its successor.
func TestOfTwoUpgradesAtOnceTheSmallerURIGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		partner   vocab.ID
		continues bool // whether the partner's conversation names alice's as its predecessor
		wins      bool
	}{
		"the own one":           {"https://zed.example/users/zoe", false, true},
		"the partner's":         {bobID, false, false},
		"one that continues it": {"https://zed.example/users/zoe", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			own, _, err := s.registry.Open(t.Context(), s.user, c.partner)
			if err != nil {
				t.Fatal(err)
			}
			s.befriend(s.user, c.partner)
			s.upgrade(own.ID)
			s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(string(c.partner), time.Now())}})
			if _, err := s.send(s.alice, s.group.Message()); err != nil {
				t.Fatal(err)
			}
			uri, group := c.partner+"/conversations/"+vocab.ID(uuid.NewString()), "urn:uuid:"+uuid.NewString()
			j := user.JoinedConversation{URI: uri, Host: c.partner, GroupID: group, Epoch: 1, LastSeq: 1, WholeSeq: 1, Status: user.StatusActive, FormerGroups: []string{}}
			arrival := conversation.Arrival{Me: aliceID, Now: s.now(), EncryptedChat: audience.Rule(registry.DefaultPermissions().EncryptedChat)}
			s.write(s.user, func(ctx context.Context, tx *user.Tx) error {
				predecessor := vocab.ID("")
				if c.continues {
					predecessor = own.URI
				}
				is, err := conversation.JoinUpgrade(ctx, tx, arrival, &j, predecessor)
				if err != nil || !is {
					t.Fatalf("it is met: %v, %v", is, err)
				}
				return tx.Joined.Add(ctx, j, s.now())
			})
			winner, loser := s.conversation(own.ID), s.conversation(j.ID)
			if !c.wins {
				winner, loser = loser, winner
			}
			if winner.ClosedAt != nil || winner.Successor != "" || winner.Predecessor != loser.URI || loser.ClosedAt == nil || loser.Successor != winner.URI {
				t.Errorf("%+v goes on, and not %+v", winner, loser)
			}
			if winner.Partner != c.partner || loser.Partner != c.partner {
				t.Errorf("they are with %q and %q", winner.Partner, loser.Partner)
			}
			if kinds := s.kinds(s.user, loser.ID); len(kinds) < 2 || kinds[0] != user.EntrySuccessor || kinds[1] != user.EntryClosed {
				t.Errorf("the timeline of the other one is %q", kinds)
			}
			if kinds := s.kinds(s.user, own.ID); !slices.Contains(kinds, user.KindApplication) || !slices.Contains(kinds, user.EntryUpgraded) {
				t.Errorf("of the own one is left %q", kinds)
			}
			_, err = s.send(s.alice, s.group.Message())
			if c.wins && err != nil {
				t.Error(err)
			}
			if !c.wins {
				s.wantConflict("ciphertext", err, "conversation_closed")
			}
			s.wantRefused("a Note", conversation.CheckOpen(s.conversation(own.ID)), fault.Unprocessable, "conversation_encrypted")
			if n := s.events()["conversation.continued"]; n != 1 {
				t.Errorf("%d events tell which one goes on", n)
			}
		})
	}
}

// The host closes only its own side of a conversation, for example because of a restore, and
// begins a successor. The member's side is still open. If the successor names the member's
// conversation as its predecessor, the member's server closes that conversation, too.
func TestAConversationOfTwoThatItsHostContinuesIsClosedInTheCopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		names bool // whether the host names the member's open conversation as the predecessor
		is    bool
	}{
		"it names the open one": {true, true},
		"it names none":         {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.befriend(s.user, bobID)
			arrival := conversation.Arrival{Me: aliceID, Now: s.now(), EncryptedChat: audience.Rule(registry.DefaultPermissions().EncryptedChat)}
			join := func(predecessor vocab.ID) (is bool, j user.JoinedConversation) {
				t.Helper()
				j = user.JoinedConversation{ID: uuid.New(), URI: bobID + "/conversations/" + vocab.ID(uuid.NewString()), Host: bobID, GroupID: "urn:uuid:" + uuid.NewString(), Epoch: 1, LastSeq: 1, WholeSeq: 1,
					Status: user.StatusActive, FormerGroups: []string{}}
				s.write(s.user, func(ctx context.Context, tx *user.Tx) (err error) {
					if is, err = conversation.JoinUpgrade(ctx, tx, arrival, &j, predecessor); err != nil {
						return err
					}
					return tx.Joined.Add(ctx, j, s.now())
				})
				return is, j
			}
			is, first := join("")
			if !is {
				t.Fatal("it is not the conversation of the two")
			}
			predecessor := vocab.ID("")
			if c.names {
				predecessor = first.URI
			}
			is, next := join(predecessor)
			if is != c.is {
				t.Fatalf("the next one is that of the two: %v, want %v", is, c.is)
			}
			before, after := s.conversation(first.ID), s.conversation(next.ID)
			if c.is && (before.ClosedAt == nil || before.Successor != after.URI || after.Partner != bobID || after.Predecessor != before.URI || after.ClosedAt != nil) {
				t.Errorf("%+v goes on after %+v", after, before)
			}
			if !c.is && (before.ClosedAt != nil || before.Successor != "" || after.Partner != "") {
				t.Errorf("%+v goes on, and beside it %+v", before, after)
			}
		})
	}
}
