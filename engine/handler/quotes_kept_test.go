package handler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// An approval that was verified is kept, and one that can be verified later than the post came is
// added.
func TestAnApprovalIsKeptAndAdded(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const quote = `{"id":"p:/notes/q","type":"Note","attributedTo":"p:/carol","to":"as:Public","cc":"us:/alice","content":"see","published":"2026-01-01T00:00:00Z","quote":"q:/notes/1","quoteAuthorization":"q:/stamps/1"}`
	edited := strings.Replace(quote, `"content":"see"`, `"content":"look","updated":"2026-01-02T00:00:00Z"`, 1)
	create, update := createOf(quote, toAll), strings.NewReplacer(`"Create"`, `"Update"`, "creates", "updates").Replace(createOf(edited, toAll))
	const boost = `{"id":"q:/boosts/1","type":"Announce","actor":"q:/eve",` + toAll + `,"object":"p:/notes/q"}`
	for name, c := range map[string]struct {
		send func(s *peertest.Scene)
		want string
	}{
		"an Update while the stamp's server is away": {func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", create)
			s.Answer("q:/stamps/1", 503)
			s.Later(time.Hour)
			s.MustSend("p:/carol", "us:/inbox", update)
		}, "look q:/stamps/1"},
		"an Update of another quote while the server is away": {func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", create)
			s.Answer("q:/stamps/1", 503)
			s.Later(time.Hour)
			s.MustSend("p:/carol", "us:/inbox", strings.Replace(update, "q:/notes/1", "q:/notes/2", 1))
		}, "look"},
		"an Update before the Create": {func(s *peertest.Scene) {
			s.MustSend("p:/carol", "us:/inbox", update)
		}, "look q:/stamps/1"},
		"a Create after a boost while the server was away": {func(s *peertest.Scene) {
			s.Serve("p:/notes/q", quote)
			s.Answer("q:/stamps/1", 503)
			s.MustSend("q:/eve", "us:/inbox", boost)
			serveStamp(s)
			s.Later(time.Hour)
			s.MustSend("p:/carol", "us:/inbox", create)
		}, "see q:/stamps/1"},
		"a Create of another quote after the boost": {func(s *peertest.Scene) {
			s.Serve("p:/notes/q", strings.Replace(quote, "q:/notes/1", "q:/notes/2", 1))
			s.MustSend("q:/eve", "us:/inbox", boost)
			s.MustSend("p:/carol", "us:/inbox", create)
		}, "see"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Follows("p:/carol")
			s.Follows("q:/eve")
			s.Actor("q:/dora")
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/dora","to":"as:Public","content":"one"}`)
			serveStamp(s)
			c.send(s)
			got := s.Column(t, s.Alice, `SELECT concat_ws(' ', raw ->> 'content', raw ->> 'quoteAuthorization') FROM objects WHERE uri = $1`, s.Long("p:/notes/q"))
			if !slices.Equal(got, []string{s.Long(c.want)}) {
				t.Errorf("the post is %q, want %q", got, c.want)
			}
		})
	}
}

func serveStamp(s *peertest.Scene) {
	s.Serve("q:/stamps/1", `{"id":"q:/stamps/1","type":"QuoteAuthorization","attributedTo":"q:/dora","interactingObject":"p:/notes/q","interactionTarget":"q:/notes/1"}`)
}

// The request stores the quoting post before there is a stamp. The post's Create brings the stamp.
func TestACreateAddsTheStampThatItsRequestGot(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	s.MustSend("p:/carol", "us:/alice/inbox", request)
	stamp := stampOf(t, s)
	post := strings.Replace(quoting, `"to":"as:Public"`, toAll+`,"quoteAuthorization":"`+stamp+`"`, 1)
	s.MustSend("p:/carol", "us:/alice/inbox", createOf(post, toAll))
	got := s.Column(t, s.Alice, `SELECT coalesce(raw ->> 'quoteAuthorization', '') FROM objects WHERE uri = $1`, s.Long("p:/notes/q"))
	if !slices.Equal(got, []string{stamp}) {
		t.Errorf("the post claims %q, want %q", got, stamp)
	}
}

// A post names its stamp, and the stamp the post, by objects. Both are stored as ids, by which the
// prune finds that the stamp is still needed.
func TestTheStampOfAQuoteIsStoredAsAnID(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("p:/carol")
	s.Actor("q:/dora")
	s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/dora","to":"as:Public","content":"one"}`)
	s.Serve("q:/stamps/1", `{"id":"q:/stamps/1","type":"QuoteAuthorization","attributedTo":"q:/dora","interactingObject":{"id":"p:/notes/q","type":"Note"},"interactionTarget":"q:/notes/1"}`)
	s.MustSend("p:/carol", "us:/inbox", createOf(`{"id":"p:/notes/q","type":"Note","attributedTo":"p:/carol","to":"as:Public","quote":"q:/notes/1","quoteAuthorization":{"id":"q:/stamps/1","type":"QuoteAuthorization"}}`, toAll))
	got := s.Column(t, s.Alice, `SELECT concat_ws(' ', raw ->> 'quoteAuthorization', raw ->> 'interactingObject') FROM objects ORDER BY uri`)
	if want := []string{s.Long("q:/stamps/1"), s.Long("p:/notes/q")}; !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}
