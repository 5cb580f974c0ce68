package handler_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// A quote arrives first by one of several activities. It is approved in each case, until the
// author of the quoted post takes the approval back.
func TestAQuoteThatOthersBringIsApproved(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const quote = `{"id":"p:/notes/q","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"see","published":"2026-01-01T00:00:00Z","quote":"q:/notes/1","quoteAuthorization":"q:/stamps/1"}`
	announce := func(kind, inner string) string {
		return `{"id":"p:/announces/` + kind + `","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers",
			"object":{"id":"p:/` + kind + `/1","type":"` + kind + `","actor":"p:/carol","to":"as:Public","object":` + inner + `}}`
	}
	create := createOf(quote, toAll)
	edited := strings.Replace(quote, `"content":"see"`, `"content":"look","updated":"2026-01-02T00:00:00Z"`, 1)
	for name, c := range map[string]struct{ from, body string }{
		"a boost":              {"q:/eve", `{"id":"q:/boosts/1","type":"Announce","actor":"q:/eve",` + toAll + `,"object":"p:/notes/q"}`},
		"a group":              {community, announce("Create", `"p:/notes/q"`)},
		"a pin":                {"p:/carol", `{"id":"p:/adds/1","type":"Add","actor":"p:/carol",` + toAll + `,"object":"p:/notes/q","target":"p:/carol/featured"}`},
		"a Create":             {"p:/carol", create},
		"a Create with its id": {"p:/carol", createOf(`"p:/notes/q"`, toAll)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Actor("p:/carol").Doc["featured"] = s.Long("p:/carol/featured")
			s.Actor("p:/carol").Show()
			moderates(s)
			s.Follows("p:/carol")
			s.Follows("q:/eve")
			s.Actor("q:/dora")
			s.Serve("p:/notes/q", quote)
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/dora","to":"as:Public","content":"one"}`)
			s.Serve("q:/stamps/1", `{"id":"q:/stamps/1","type":"QuoteAuthorization","attributedTo":"q:/dora","interactingObject":"p:/notes/q","interactionTarget":"q:/notes/1"}`)
			claims := func(when, want string) {
				t.Helper()
				got := s.Column(t, s.Alice, `SELECT concat_ws(' ', raw ->> 'content', raw ->> 'quoteAuthorization') FROM objects WHERE uri = $1`, s.Long("p:/notes/q"))
				if !slices.Equal(got, []string{s.Long(want)}) {
					t.Errorf("%s the post is %q, want %q", when, got, want)
				}
			}
			s.MustSend(c.from, "us:/inbox", c.body)
			claims("at first", "see q:/stamps/1")
			s.MustSend("p:/carol", "us:/inbox", strings.Replace(create, "creates/1", "creates/2", 1))
			claims("after a Create", "see q:/stamps/1")
			s.Serve("p:/notes/q", edited)
			s.Answer("q:/stamps/1", 503) // the engine needs no answer: it has verified the stamp
			s.MustSend(community, "us:/inbox", announce("Update", `"p:/notes/q"`))
			claims("after an edit that the group announces", "look q:/stamps/1")
			s.MustSend("q:/dora", "us:/inbox", `{"id":"q:/deletes/1","type":"Delete","actor":"q:/dora","to":"as:Public","object":"q:/stamps/1"}`)
			claims("after the stamp was deleted", "look")
		})
	}
}
