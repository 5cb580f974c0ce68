package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
)

// A private answer in bob's thread is for whom it names, whatever bob has to do with its author.
func TestAPrivateAnswerToSomebodyElseDoesNotReachWhomItAnswers(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	lets := func(s *peertest.Scene) {
		c := registry.DefaultUser()
		c.Messaging.AllowInsecureDM = true
		if err := s.Registry.SetUser(s.Alice, c); err != nil {
			t.Fatal(err)
		}
	}
	for n, tt := range []struct {
		name  string
		given func(bob *peertest.Scene)
		to    string // whom bob's post is for
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

// An Update goes to everybody who holds something of its author, and changes it for whom the new words are for.
func TestNewWordsAreForWhomTheyAddress(t *testing.T) {
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
		noOne   = `"x":1`
	)
	for n, tt := range []struct {
		name      string
		old       string
		oldInbox  string
		unfollows bool // her server ends bob's follow meanwhile
		new       string
		newInbox  string
		want      string
	}{
		{"for everybody", all, shared, true, all, mine, "new"},
		{"for followers, of whom bob is one", fans, shared, false, fans, mine, "new"},
		{"for followers, of whom bob is none any more", fans, shared, true, fans, shared, "old"},
		{"for followers, of whom bob is none any more, to the inbox of one who is", fans, shared, true, fans, mine, "old"},
		{"for followers, and bob besides", bobToo, shared, true, bobToo, shared, "new"},
		{"for somebody else, of what was for everybody", all, shared, false, alice, mine, "old"},
		{"for somebody else, of what was for followers", fans, shared, false, alice, shared, "old"},
		{"for bob, of what was for everybody", all, shared, true, bobOnly, shared, "new"},
		{"for both, of a letter", both, shared, true, both, mine, "new"},
		{"for nobody who is named, of a letter that named nobody", noOne, "theirs", true, noOne, mine, "new"},
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
