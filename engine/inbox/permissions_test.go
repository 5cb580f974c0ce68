package inbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// An actor that has got a private message from the user is no stranger, even if its own message
// answers none of the user's messages. The user's message does not count if it has other readers.
func TestTheUsersLettersAreAnswered(t *testing.T) {
	for _, c := range []struct {
		name, to string
		takes    registry.Strangers
		feed     string // "" if no feed shows it
	}{
		{"written to", `p:/dave`, registry.RequestStrangers, "main"},
		{"written to, without requests", `p:/dave`, registry.DropStrangers, "main"},
		{"another is written to", `p:/carol`, registry.RequestStrangers, "requests"},
		{"written to with the followers", `us:/alice/followers","p:/dave`, registry.RequestStrangers, "requests"},
		{"written to with everybody", `as:Public","p:/dave`, registry.DropStrangers, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			strangers(t, s, c.takes)
			create := user.Activity{ID: uuid.New(), URI: s.ID("us:/alice/activities/1"), Direction: user.Outbound, Type: vocab.Create, Actor: s.ID("us:/alice"), Published: s.Now(),
				Raw: []byte(s.Long(`{"type":"Create","actor":"us:/alice","to":["` + c.to + `"]}`))}
			if err := s.Store.Instance.Acquaintances.Add(t.Context(), s.ID("p:/dave"), []vocab.Username{s.Alice}, false); err != nil { // the outbox does this for each recipient
				t.Fatal(err)
			}
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error { return tx.Activities.Add(ctx, create) })
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, letter(1))
			for _, feed := range []string{"main", "requests"} {
				if got := shownIn(t, s, feed); slices.Contains(got, "001") != (feed == c.feed) {
					t.Errorf("%s has %q, want the letter in %q alone", feed, got, c.feed)
				}
			}
			told := s.Column(t, s.Alice, `SELECT count(*) FROM event_outbox WHERE type = 'dm.received'`)
			if (told[0] == "1") != (c.feed == "main") {
				t.Errorf("%s events are dm.received, the letter is in %q", told[0], c.feed)
			}
		})
	}
}

// The permission insecure_dm decides which actors' private messages wait among the requests.
func TestPrivateMessagesFollowTheRule(t *testing.T) {
	usual := registry.DefaultPermissions().InsecureDM
	relates := func(kind, status string) func(*testing.T, *peertest.Scene) {
		return func(t *testing.T, s *peertest.Scene) {
			s.Actor("p:/dave")
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: s.ID("p:/dave"), Type: kind, Status: status, Activity: s.ID("p:/dave/1")}, s.Now())
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		rule  registry.Rule
		given func(*testing.T, *peertest.Scene)
		waits bool
	}{
		{"a friend", usual, relates(user.FriendOf, user.Accepted), false},
		{"who asks to be a friend", usual, relates(user.FriendOf, user.Pending), true},
		{"who is followed", usual, relates(user.Following, user.Accepted), false},
		{"a follower", usual, relates(user.Follower, user.Accepted), true},
		{"a follower, by rule", registry.Rule{Any: []string{"follower"}}, relates(user.Follower, user.Accepted), false},
		{"who is followed, where close friends alone may", registry.Rule{Any: []string{"closeFriendOf"}}, relates(user.Following, user.Accepted), true},
		{"who is followed, where nobody may", registry.Rule{}, relates(user.Following, user.Accepted), true},
		{"a follower, where mutuals may", registry.Rule{All: []string{"following", "follower"}}, relates(user.Follower, user.Accepted), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
				now.Permissions.InsecureDM = c.rule
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			c.given(t, s)
			s.MustSend("p:/dave", mine, letter(1))
			feed := "main"
			if c.waits {
				feed = "requests"
			}
			if got := shownIn(t, s, feed); len(got) != 1 {
				t.Errorf("%s has %q, want the letter", feed, got)
			}
		})
	}
}

// A friend's private message reaches the user even if it does not name the user: its recipients
// may be hidden, or may be a list of the friend's. A post for the friend's followers does not
// reach the user.
func TestAFriendsMessageMayHideItsRecipients(t *testing.T) {
	for to, shown := range map[string]bool{`,"to":"p:/dave/lists/1"`: true, ``: true, `,"to":"p:/dave/followers"`: false} {
		t.Run(to, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: s.ID("p:/dave"), Type: user.FriendOf, Status: user.Accepted, Activity: s.ID("p:/dave/1")}, s.Now())
			})
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, strings.NewReplacer(`,"to":"us:/alice"`, to, `,"tag":{"type":"Mention","href":"us:/alice"}`, "").Replace(letter(1)))
			if got := shownIn(t, s, "main"); slices.Contains(got, "001") != shown {
				t.Errorf("main has %q, want the message there: %t", got, shown)
			}
		})
	}
}

// Under the rule "drop", an actor whose private messages are accepted may also invite the user.
func TestAnActorThatTheUserKnowsByMessagesMayInvite(t *testing.T) {
	for name, given := range map[string]func(context.Context, *hosted, *user.Tx) error{
		"the user has written to it": func(ctx context.Context, h *hosted, tx *user.Tx) error {
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.New(), URI: h.ID("us:/alice/activities/1"), Direction: user.Outbound, Type: vocab.Create, Actor: h.ID("us:/alice"), Published: h.Now(),
				Raw: []byte(h.Long(`{"type":"Create","actor":"us:/alice","to":["p:/dave"]}`))})
		},
		"the user has accepted its request": func(ctx context.Context, h *hosted, tx *user.Tx) error {
			_, err := tx.Requests.Accept(ctx, h.ID("p:/dave"), h.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(t)
			h.MustSend("p:/dave", mine, letter(1))
			if err := h.Store.Write(t.Context(), h.Alice, func(ctx context.Context, tx *user.Tx) error { return given(ctx, h, tx) }); err != nil {
				t.Fatal(err)
			}
			strangers(t, h.Scene, registry.DropStrangers)
			h.begun()
			h.want("conversations", `SELECT uri FROM conversations`, h.uri)
		})
	}
}
