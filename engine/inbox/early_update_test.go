package inbox_test

import (
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/registry"
)

// Carol's server sends the Update of a post before its Create, as after an outage. If the post is
// addressed to alice, who does not follow carol, the Update is kept for the Create. A message that
// would be a request comes in with its Create alone, as does a post for others.
func TestAnUpdateOfAStrangersPostMayComeBeforeItsCreate(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const public, private, others = `"to":"as:Public","cc":"us:/alice"`, `"to":"us:/alice"`, `"to":"as:Public"`
	post := func(to, content, more string) string {
		return `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol",` + to + `,"published":"2026-01-01T00:00:00Z","content":"` + content + `"` + more + `}`
	}
	for name, c := range map[string]struct {
		to    string
		takes registry.Strangers
		held  []string // what alice holds between the Update and the Create
		feed  string
		want  string // what she holds at the end
	}{
		"a mention":               {public, registry.RequestStrangers, []string{"new"}, "main", "new"},
		"a message, when allowed": {private, registry.AllowStrangers, []string{"new"}, "main", "new"},
		"a request":               {private, registry.RequestStrangers, nil, "requests", "old"},
		"a post for others":       {others, registry.RequestStrangers, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { now.Messaging.Strangers = c.takes; return nil })
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/carol", mine, `{"id":"p:/follows/1","type":"Follow","actor":"p:/carol","object":"us:/alice"}`) // carol is known here
			s.MustSend("p:/carol", shared, `{"id":"p:/updates/1","type":"Update","actor":"p:/carol",`+c.to+`,"object":`+post(c.to, "new", `,"updated":"2026-01-02T00:00:00Z"`)+`}`)
			if got := contents(t, s); !slices.Equal(got, c.held) {
				t.Errorf("after the Update alice has %q, want %q", got, c.held)
			}
			s.MustSend("p:/carol", shared, `{"id":"p:/creates/001","type":"Create","actor":"p:/carol",`+c.to+`,"object":`+post(c.to, "old", "")+`}`)
			if c.feed == "" {
				return
			}
			if got := contents(t, s); !slices.Equal(got, []string{c.want}) {
				t.Errorf("after the Create alice has %q, want %q", got, c.want)
			}
			if got := shownIn(t, s, c.feed); !slices.Equal(got, []string{"001"}) {
				t.Errorf("%s has %q, want the post", c.feed, got)
			}
		})
	}
}
