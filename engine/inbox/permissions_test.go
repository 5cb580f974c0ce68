package inbox_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
)

// The rule insecure_dm says whose private messages wait among the requests.
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
