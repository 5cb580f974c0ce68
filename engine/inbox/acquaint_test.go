package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// acquainted counts the users that an actor may concern.
func acquainted(t *testing.T, s *peertest.Scene, name string) int {
	t.Helper()
	users, err := s.Store.Instance.Acquaintances.Users(t.Context(), s.ID(name), false)
	if err != nil {
		t.Fatal(err)
	}
	return len(users)
}

// A stranger sends an activity that the user will certainly not keep. The engine then stores
// nothing about the stranger and opens no user's database.
func TestAStrangerWhoIsRefusedLeavesNothing(t *testing.T) {
	const toFollowers = `{"id":"p:/creates/900","type":"Create","actor":"p:/dave","to":"p:/dave/followers","object":{"id":"p:/notes/900","type":"Note","attributedTo":"p:/dave","to":"p:/dave/followers","content":"among us"}}`
	answer := strings.ReplaceAll(letter(1), `"content"`, `"inReplyTo":"us:/alice/objects/1","content"`)
	for _, tt := range []struct {
		name, body string
		takes      registry.Strangers
		reason     string
	}{
		{"a letter, dropped", letter(1), registry.DropStrangers, "stranger"},
		{"a letter, a request", letter(1), registry.RequestStrangers, ""},
		{"a letter, allowed", letter(1), registry.AllowStrangers, ""},
		{"an answer", answer, registry.DropStrangers, ""},
		{"a public post", toAlice(strings.ReplaceAll(note(1, "hi"), "carol", "dave")), registry.DropStrangers, ""},
		{"a post for followers", toFollowers, registry.AllowStrangers, "followers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			strangers(t, s, tt.takes)
			s.Posts("us:/alice/objects/1", "p:/dave")
			if _, err := s.SQL(t).ExecContext(t.Context(), `DELETE FROM acquaintances WHERE actor_uri = $1`, string(s.ID("p:/dave"))); err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/dave", mine, tt.body)
			want := map[bool]int{true: 1}[tt.reason == ""]
			if got := acquainted(t, s, "p:/dave"); got != want {
				t.Errorf("%d users are acquainted with the stranger, want %d", got, want)
			}
			if row, err := s.Store.Instance.Actors.Find(t.Context(), s.ID("p:/dave")); err != nil || (row != nil) != (want == 1) {
				t.Errorf("the stranger is stored as %v, %v", row, err)
			}
			if err := s.Inbox.FlushIgnored(t.Context()); err != nil {
				t.Fatal(err)
			}
			a, err := vocab.ParseActivity([]byte(s.Long(tt.body)))
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if ignored, err := s.Store.Instance.Ignored.Find(t.Context(), a.ID); err != nil {
				t.Fatal(err)
			} else if ignored != nil {
				reason = ignored.Reason
			}
			if reason != tt.reason {
				t.Errorf("ignored for %q, want %q", reason, tt.reason)
			}
		})
	}
}

// A domain's actors can become acquaintances of a limited number of users a day. The limit does
// not count users who already know the actor or who follow the sender.
func TestNewAcquaintancesHaveABudget(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	s.MustSend("p:/carol", mine, liked("p:/carol"))
	s.Inbox.NewAcquaintancesDaily(1)
	s.MustSend("p:/dave", mine, liked("p:/dave"))
	if err := s.Send("p:/erin", mine, liked("p:/erin")); fault.KindOf(err) != fault.RateLimited {
		t.Errorf("err = %v, want RateLimited", err)
	}
	if acquainted(t, s, "p:/erin") != 0 {
		t.Error("alice is acquainted with an actor that the budget refuses")
	}
	for _, name := range []string{"p:/carol", "p:/dave", "q:/mallory"} {
		if err := s.Send(name, mine, liked(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Follows("p:/erin")
	if err := s.Send("p:/erin", mine, liked("p:/erin")); err != nil {
		t.Errorf("an actor that alice follows: %v", err)
	}
}

// The engine trusts a stored acquaintance for a limited time. That time ends before the nightly
// cleanup may remove the row. Afterwards the engine stores the row again if it was removed.
func TestAnAcquaintanceIsNotBelievedForLong(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	forget := func() {
		t.Helper()
		if _, err := s.SQL(t).ExecContext(t.Context(), `DELETE FROM acquaintances WHERE actor_uri = $1`, string(s.ID("p:/carol"))); err != nil {
			t.Fatal(err)
		}
		s.MustSend("p:/carol", mine, liked("p:/carol"))
	}
	s.MustSend("p:/carol", mine, liked("p:/carol"))
	forget()
	if acquainted(t, s, "p:/carol") != 0 {
		t.Error("each activity writes the row")
	}
	s.Later(instance.AcquaintanceBelieved + time.Second)
	forget()
	if acquainted(t, s, "p:/carol") != 1 {
		t.Error("the row is believed for longer than it stays")
	}
}
