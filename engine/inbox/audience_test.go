package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
)

// A private answer in bob's thread reaches only the actors that it names. It does not reach bob,
// even if bob follows its author, lets everybody write to him, or has written to the author.
func TestAPrivateAnswerToSomebodyElseDoesNotReachTheAuthorItAnswers(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	lets := func(s *peertest.Scene) {
		c := registry.DefaultUser()
		c.Messaging.AllowInsecureDM = true
		if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { *now = c; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for n, tt := range []struct {
		name  string
		given func(bob *peertest.Scene)
		to    string // the recipients of bob's post
	}{
		{"bob follows her", func(bob *peertest.Scene) { bob.Follows("p:/carol") }, "as:Public"},
		{"bob lets everybody write", lets, "as:Public"},
		{"bob has written to her in private", func(*peertest.Scene) {}, "p:/carol"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			bob := s.With(fmt.Sprint("bob", n))
			s.Follows("p:/carol")
			tt.given(bob)
			bob.Posts("us:/alice/objects/1", tt.to)
			for inbox, n := range map[string]string{mine: "1", shared: "2"} {
				body := `{"id":"p:/acts/` + n + `","type":"Create","actor":"p:/carol","to":"us:/alice","object":{"id":"p:/notes/` + n + `","type":"Note",
					"to":"us:/alice","content":"between us","inReplyTo":"` + string(bob.ID("us:/alice/objects/1")) + `"}}`
				if made := bob.Changes(func() { s.MustSend("p:/carol", inbox, body) }); len(made) > 0 {
					t.Errorf("to %s: bob is shown %q", inbox, made)
				}
			}
			if got := s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`); !slices.Equal(got, []string{"between us", "between us"}) {
				t.Errorf("alice has %q, want both", got)
			}
		})
	}
}

// Every user who holds anything of an author gets the author's Updates. The new words of a post
// reach only the users that the Update addresses.
func TestNewWordsAreForTheirRecipients(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	note := func(words, to string) string {
		return `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",` + to + `,"content":"` + words + `","published":"2026-01-01T10:00:00Z"}`
	}
	const (
		all     = `"to":"as:Public"`
		fans    = `"to":"p:/carol/followers"`
		bobToo  = `"to":"p:/carol/followers","cc":"BOB"`
		bobOnly = `"to":"BOB"`
		both    = `"to":["us:/alice","BOB"]`
		alice   = `"to":"us:/alice"`
		herself = `"to":"p:/carol"`
		noOne   = `"x":1`
	)
	for n, tt := range []struct {
		name      string
		old       string
		oldInbox  string
		unfollows bool // carol's server ends bob's follow before the Update
		new       string
		newInbox  string
		want      string
	}{
		{"for everybody", all, shared, true, all, mine, "new"},
		{"for followers, and bob is one", fans, shared, false, fans, mine, "new"},
		{"for followers, and bob is none any more", fans, shared, true, fans, shared, "old"},
		{"for followers, and bob is none any more, to the inbox of one who is", fans, shared, true, fans, mine, "old"},
		{"for followers, and bob besides", bobToo, shared, true, bobToo, shared, "new"},
		{"for somebody else, of what was for everybody", all, shared, false, alice, mine, "old"},
		{"for somebody else, of what was for followers", fans, shared, false, alice, shared, "old"},
		{"for bob, of what was for everybody, by a stranger", all, shared, true, bobOnly, shared, "old"},
		{"for bob, of what was for everybody", all, shared, false, bobOnly, shared, "new"},
		{"for both, of a letter", both, shared, true, both, mine, "new"},
		{"SEE-01 for alice alone, of a letter to both", both, shared, true, alice, shared, "old"},
		{"SEE-01 for alice alone, of a letter to both, to a follower", both, shared, false, alice, shared, "old"},
		{"for a group, in which bob is", herself, "theirs", true, herself, "theirs", "new"},
		{"for a group, in which bob is no more, to the inbox of one who is", herself, "theirs", true, herself, mine, "old"},
		{"for nobody who is named, of a letter that named nobody", noOne, "theirs", true, noOne, "theirs", "new"},
		{"for nobody who is named, of a letter that named nobody, to the inbox of another", noOne, "theirs", true, noOne, mine, "old"},
		{"for nobody who is named, of what was for followers, and bob follows no more", fans, shared, true, noOne, shared, "old"},
		{"for nobody who is named, of what was for everybody", all, shared, true, noOne, shared, "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			bob := s.With(fmt.Sprint("holder", n))
			s.Follows("p:/carol")
			bob.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
			bob.MustSend("p:/carol", mine, `{"id":"p:/accepts/bob","type":"Accept","actor":"p:/carol","object":"us:/alice/activities/f"}`)
			send := func(kind, words, to, inbox string) {
				if inbox == "theirs" {
					inbox = string(bob.ID(mine))
				}
				body := `{"id":"p:/acts/` + kind + `","type":"` + kind + `","actor":"p:/carol",` + to + `,` + note(words, to) + `}`
				s.MustSend("p:/carol", inbox, strings.ReplaceAll(body, "BOB", string(bob.ID("us:/alice"))))
			}
			send("Create", "old", tt.old, tt.oldInbox)
			if tt.unfollows {
				bob.MustSend("p:/carol", mine, `{"id":"p:/rejects/bob","type":"Reject","actor":"p:/carol","object":"us:/alice/activities/f"}`)
			}
			send("Update", "new", tt.new, tt.newInbox)
			if got := bob.Column(t, bob.Alice, `SELECT raw ->> 'content' FROM objects`); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("bob has %q, want the %s words", got, tt.want)
			}
		})
	}
}

// A recipient of a private post can forward the post with its proof. alice does not store it
// unless the post is for her.
func TestALetterIsNotPassedOn(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	letter := func(to string) string {
		return `{"id":"p:/acts/1","type":"Create","actor":"p:/carol",` + to + `,"object":{"id":"p:/replies/1","type":"Note","attributedTo":"p:/carol",` + to + `,"content":"between us","inReplyTo":"q:/notes/1"}}`
	}
	for _, tt := range []struct {
		name, to string
		want     int
	}{
		{"to who passes it on", `"to":"q:/erin"`, 0},
		{"to somebody else", `"to":"p:/dave"`, 0},
		{"to nobody who is named", `"x":1`, 0},
		{"to alice", `"to":["q:/erin","us:/alice"]`, 1},
		{"to everybody", `"to":"as:Public"`, 1},
		{"to the followers of its author", `"to":"p:/carol/followers"`, 1},
		{"to the followers of who passes it on", `"to":["q:/erin","q:/erin/followers"]`, 1},
	} {
		for _, inbox := range []string{mine, shared} {
			t.Run(tt.name+", to "+inbox, func(t *testing.T) {
				t.Parallel()
				s := stage.Scene(t)
				s.Follows("p:/carol")
				s.Act("q:/erin", `{"id":"us:/alice/activities/e","type":"Follow","actor":"us:/alice","object":"q:/erin"}`)
				s.MustSend("q:/erin", mine, `{"id":"q:/accepts/e","type":"Accept","actor":"q:/erin","object":"us:/alice/activities/e"}`)
				s.MustSend("q:/erin", shared, `{"id":"q:/acts/1","type":"Create","actor":"q:/erin","to":"as:Public","object":{"id":"q:/notes/1","type":"Note","attributedTo":"q:/erin","to":"as:Public"}}`)
				if err := s.Pass("q:/erin", inbox, s.Proven("p:/carol", letter(tt.to))); err != nil {
					t.Fatal(err)
				}
				if got := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE uri = $1`, string(s.ID("p:/replies/1"))); len(got) != tt.want {
					t.Errorf("stored: %q, want %d", got, tt.want)
				}
			})
		}
	}
}
