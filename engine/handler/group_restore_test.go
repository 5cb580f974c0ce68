package handler_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// Lemmy tells by the Undo of a Delete that an author or a moderator has restored a post.
func TestAGroupAnnouncesThatAPostIsRestored(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const comment = "q:/comment/7"
	post := objectOf(t, lemmy(t, "announce_create_comment"))
	deleted := func(s *peertest.Scene) {
		moderates(s)
		s.Serve(comment, post)
		s.MustSend(community, "us:/inbox", lemmy(t, "announce_create_comment"))
		s.Answer(comment, http.StatusGone)
		s.MustSend(community, "us:/inbox", lemmy(t, "announce_delete"))
	}
	undo := func(by string) string {
		return `{"id":"p:/activities/announce/u9","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers",
			"object":{"id":"` + by + `/undo/9","type":"Undo","actor":"` + by + `","to":"as:Public","object":
			{"id":"` + by + `/delete/9","type":"Delete","actor":"` + by + `","to":"as:Public","object":"` + comment + `"}}}`
	}
	shows := func(doc string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Serve(comment, doc) }
	}
	restored := []string{"- object " + comment + " Tombstone", "- tombstones 1", "+ object " + comment + " Note <p>Indeed</p>\n"}
	for name, c := range map[string]struct {
		given func(*peertest.Scene)
		body  string
		want  []string
	}{
		"by its author":                   {both(deleted, shows(post)), undo("q:/u/eve"), restored},
		"by a moderator":                  {both(deleted, shows(post)), undo("p:/u/mod"), restored},
		"that its server does not show":   {deleted, undo("q:/u/eve"), nil},
		"that is another author's by now": {both(deleted, shows(strings.ReplaceAll(post, "q:/u/eve", "q:/u/mallory"))), undo("q:/u/eve"), nil},
		"that is not public":              {both(deleted, shows(strings.ReplaceAll(post, "as:Public", "q:/u/dave"))), undo("q:/u/eve"), nil},
		"that is not here":                {both(moderates, shows(post)), undo("q:/u/eve"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			c.given(s)
			made := s.Changes(func() { s.MustSend(community, "us:/inbox", c.body) })
			if !slices.Equal(made, c.want) {
				t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(made, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	t.Run("and is edited after that", func(t *testing.T) {
		t.Parallel()
		s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
		both(deleted, shows(post))(s)
		s.MustSend(community, "us:/inbox", undo("q:/u/eve"))
		s.Later(time.Hour) // the server was asked in vain before
		s.Serve(comment, objectOf(t, lemmy(t, "announce_update")))
		s.MustSend(community, "us:/inbox", lemmy(t, "announce_update"))
		if got := s.Column(t, s.Alice, `SELECT coalesce(raw ->> 'content', 'nothing') FROM objects`); len(got) != 1 || !strings.Contains(got[0], "Indeed not") {
			t.Errorf("alice holds %q, want the edit", got)
		}
	})
}
