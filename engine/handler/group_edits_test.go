package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// A fetched copy without the time of its change counts as older than a stored version with such a
// time.
func TestAnUndatedCopyReplacesNoDatedVersion(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	post := func(content, more string) string {
		return `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","cc":"` + community + `","content":"` + content + `","published":"2026-01-01T00:00:00Z"` + more + `}`
	}
	update := func(object string) string {
		return `{"id":"p:/updates/` + string(rune('a'+len(object)%26)) + `","type":"Update","actor":"p:/carol","to":"as:Public","object":` + object + `}`
	}
	for name, c := range map[string]struct{ from, body string }{
		"by a group":            {community, `{"id":"p:/announces/1","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers","object":` + update(`"p:/notes/1"`) + `}`},
		"by its author, by id":  {"p:/carol", update(`"p:/notes/1"`)},
		"by its author, a book": {"p:/carol", update(post("first", `,"inReplyToBook":"p:/books/1"`))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			both(moderates, follows)(s)
			s.MustSend("p:/carol", "us:/inbox", createOf(post("first", ""), toAll))
			s.MustSend("p:/carol", "us:/inbox", strings.Replace(update(post("second", `,"updated":"2026-01-02T00:00:00Z"`)), "updates/", "updates/own", 1))
			s.Serve("p:/notes/1", post("first", ""))
			expect(t, s, name, nil, accepted, func() error { return s.Send(c.from, "us:/inbox", c.body) })
			if got := s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`); !slices.Equal(got, []string{"second"}) {
				t.Errorf("alice holds %q, want the second version", got)
			}
		})
	}
}
