package inbox_test

import (
	"fmt"
	"slices"
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
