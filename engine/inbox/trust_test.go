package inbox_test

import (
	"context"
	"encoding/json"
	"github.com/lightweb/lightweb/db/user"
	"testing"
)

// A friend is a contact, even if the user does not follow the friend. A follower is a stranger,
// and so is an actor who has only asked for friendship.
func TestAFriendIsAContact(t *testing.T) {
	for _, c := range []struct{ kind, status, trust string }{
		{user.Following, user.Accepted, "contact"},
		{user.FriendOf, user.Accepted, "contact"},
		{user.CloseFriendOf, user.Accepted, "contact"},
		{user.FriendOf, user.Pending, "stranger"},
		{user.Follower, user.Accepted, "stranger"},
	} {
		t.Run(c.kind+", "+c.status, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			var trust []string
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
				return tx.Relationships.Set(ctx, user.Relationship{Actor: s.ID("p:/dave"), Type: c.kind, Status: c.status, Activity: s.ID("p:/dave/1")}, s.Now())
			})
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, `{"id":"p:/creates/1","type":"Create","actor":"p:/dave","to":["as:Public","us:/alice"],"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","to":["as:Public","us:/alice"],"content":"hi"}}`)
			err = s.Store.Read(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
				events, err := tx.Events.List(ctx, 0, 10)
				for _, e := range events {
					var payload struct{ Trust string }
					if err := json.Unmarshal(e.Payload, &payload); err != nil {
						return err
					}
					trust = append(trust, payload.Trust)
				}
				return err
			})
			if err != nil || len(trust) != 1 || trust[0] != c.trust {
				t.Errorf("it is told of as %q (%v), want %s", trust, err, c.trust)
			}
		})
	}
}
