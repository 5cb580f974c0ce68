package inbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	joint       = `{"id":"p:/notes/1","type":"Note","attributedTo":["p:/carol","p:/dave"],"to":"as:Public","cc":"us:/alice","content":"hi"}`
	jointCreate = `{"id":"p:/creates/1","type":"Create","actor":"p:/carol","to":"as:Public","cc":"us:/alice","object":` + joint + `}`
	jointBoost  = `{"id":"p:/boosts/2","type":"Announce","actor":"p:/carol","to":"as:Public","object":"q:/notes/2"}`
)

// serveJoint shows a post with two authors, of which the second is dave of the other server.
func serveJoint(s *peertest.Scene) {
	s.Serve("q:/notes/2", strings.NewReplacer("p:/notes/1", "q:/notes/2", "p:/carol", "q:/eve", "p:/dave", "q:/dave").Replace(joint))
}

// The user blocks the second of two authors of a post. The post is ignored, whether it is embedded
// or fetched.
func TestABlockHoldsForEachAuthorOfAPost(t *testing.T) {
	for name, c := range map[string]struct{ blocks, body, id string }{
		"embedded": {"p:/dave", jointCreate, "p:/creates/1"},
		"fetched":  {"q:/dave", jointBoost, "p:/boosts/2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			serveJoint(s)
			s.Act(c.blocks, `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"`+c.blocks+`"}`)
			expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, c.body) })
			if got := why(t, s, c.id); got != inbox.IgnoredBlocked {
				t.Errorf("it is ignored as %q, want %q", got, inbox.IgnoredBlocked)
			}
		})
	}
}

// The user has muted the second of two authors of a post. The post enters no feed and is no
// mention.
func TestAMuteHoldsForEachAuthorOfAPost(t *testing.T) {
	for name, c := range map[string]struct{ mutes, body string }{
		"embedded": {"p:/dave", jointCreate},
		"fetched":  {"q:/dave", jointBoost},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			serveJoint(s)
			err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error {
				now.Moderation.MutedActors = []vocab.ID{s.ID(c.mutes)}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s.MustSend("p:/carol", mine, c.body)
			if got := s.Column(t, s.Alice, `SELECT activity_uri FROM feed`); len(got) != 0 {
				t.Errorf("the feed has %q, want nothing", got)
			}
			if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox`); slices.Contains(got, "mention.received") {
				t.Errorf("events: %q, want no mention", got)
			}
		})
	}
}

// A followed author quotes a post of an actor that the user blocks, with that actor's approval. The
// quote brings no words of the blocked actor, so the post is stored like one without approval.
func TestABlockOfAQuotedAuthorKeepsNoQuoteOut(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.Act("q:/dora", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"q:/dora"}`)
	s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/dora","to":"as:Public","content":"one"}`)
	s.Serve("q:/stamps/1", `{"id":"q:/stamps/1","type":"QuoteAuthorization","attributedTo":"q:/dora","interactingObject":"p:/notes/1","interactionTarget":"q:/notes/1"}`)
	post := strings.Replace(written("p:/carol", "p:/notes/1", "see"), `{`, `{"quote":"q:/notes/1","quoteAuthorization":"q:/stamps/1",`, 1)
	s.MustSend("p:/carol", mine, create("p:/carol", "001", post))
	if got := holds(t, s, "p:/notes/1"); got != s.Long("p:/carol says see") {
		t.Errorf("alice has %q", got)
	}
}
