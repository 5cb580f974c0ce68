package handler_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
)

const (
	quoting = `{"id":"p:/notes/q","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"<p>see</p>","quote":"us:/alice/objects/1"}`
	request = `{"id":"p:/requests/1","type":"QuoteRequest","actor":"p:/carol","object":"us:/alice/objects/1","instrument":` + quoting + `}`
)

// letting sets which actors may quote alice's posts.
func letting(who registry.Quotes) func(*peertest.Scene) {
	return func(s *peertest.Scene) {
		if err := s.Registry.UpdateUser(s.Alice, func(now *registry.User) error { now.Quotes = who; return nil }); err != nil {
			panic(err)
		}
	}
}

// derived matches the ids that the engine derives from names. They are the same at each
// derivation.
var derived = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// quotesBy returns the same changes as changesBy. It replaces the ids of stamps and refusals by #.
func quotesBy(s *peertest.Scene, body string) (made []string) {
	for _, line := range changesBy(s, body) {
		made = append(made, derived.ReplaceAllString(line, "#"))
	}
	return made
}

var (
	stamped  = []string{"+ object p:/notes/q Note <p>see</p>", "+ object us:/alice/objects/# QuoteAuthorization"}
	approved = []string{
		"+ activity inbound QuoteRequest p:/requests/1 p:/notes/q",
		"+ activity outbound Accept us:/alice/activities/* p:/requests/1",
		"+ event accept.sent us:/alice/activities/* p:/requests/1 by self us:/alice",
		"+ event quoterequest.received p:/requests/1 p:/notes/q by stranger p:/carol"}
	told     = "+ event quote.received p:/requests/1 p:/notes/q by stranger p:/carol"
	answered = `+ sent "type":"Accept"}`
	refusal  = []string{
		"+ activity outbound Reject us:/alice/activities/# p:/requests/1",
		"+ event reject.sent us:/alice/activities/# p:/requests/1 by self us:/alice",
		`+ sent "type":"Reject"}`}
)

// The answer to a request to quote a public post follows the user's settings.
func TestQuoteRequests(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	with := func(change ...string) string { return strings.NewReplacer(change...).Replace(request) }
	taken := slices.Concat(stamped, approved, []string{told, answered})
	for _, c := range []struct {
		name  string
		given func(*peertest.Scene)
		body  string
		want  []string
	}{
		{"by anybody, when anybody may", posted("as:Public"), request, taken},
		{"in the form of before", posted("as:Public"), with(`"quote":`, `"_misskey_quote":`), taken},
		{"as a link to what is quoted", posted("as:Public"), with(`"quote":"us:/alice/objects/1"`, `"tag":[{"type":"Link","rel":"https://misskey-hub.net/ns#_misskey_quote","href":"us:/alice/objects/1"}]`), taken},
		{"with the id of the post alone", func(s *peertest.Scene) { posted("as:Public")(s); s.Serve("p:/notes/q", quoting) }, with(quoting, `"p:/notes/q"`), taken},
		{"by a private post, which is not kept", posted("as:Public"), with(`"to":"as:Public"`, `"to":"p:/carol/followers"`), slices.Concat(stamped[1:], approved, []string{told, answered})},
		{"by a follower, when followers may", both(posted("as:Public"), letting(registry.FollowersQuote), func(s *peertest.Scene) { s.Followed("p:/carol") }), request, taken},
		{"by somebody else, when followers may", both(posted("as:Public"), letting(registry.FollowersQuote)), request, refusal},
		{"when nobody may", both(posted("as:Public"), letting(registry.NobodyQuotes)), request, refusal},
		{"of a post for followers, by one", both(posted("us:/alice/followers"), func(s *peertest.Scene) { s.Followed("p:/carol") }), request, refusal},
		{"of a post that the actor cannot see", posted("us:/alice/followers"), request, nil},
		{"of a post that there is not", nil, request, nil},
		{"of somebody else's post", both(follows, func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/inbox", createOf(note, toAll)) }), with(`us:/alice/objects/1`, `p:/notes/1`), nil},
		{"with the id of a post that is not there", posted("as:Public"), with(quoting, `"p:/notes/q"`), nil},
		{"by who is blocked", both(posted("as:Public"), func(s *peertest.Scene) {
			s.Act("p:/carol", `{"id":"us:/alice/activities/b","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
		}), request, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Actor("p:/carol")
			if c.given != nil {
				c.given(s)
			}
			made := quotesBy(s, c.body)
			if slices.Sort(made); !slices.Equal(made, slices.Sorted(slices.Values(c.want))) {
				t.Errorf("changes:\n%s\nwant:\n%s", strings.Join(made, "\n"), strings.Join(c.want, "\n"))
			}
			if again := quotesBy(s, c.body); len(again) > 0 {
				t.Errorf("again it changes %q", again)
			}
		})
	}
}

// A request is accepted only if its instrument is a post by the request's actor, and if that post
// quotes the requested post.
func TestQuoteRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	s.Actor("p:/carol")
	for name, instrument := range map[string]string{
		"of nothing":               `null`,
		"of another server":        `"q:/notes/1"`,
		"of another author":        strings.ReplaceAll(quoting, `"attributedTo":"p:/carol"`, `"attributedTo":"p:/dave"`),
		"of no author":             strings.ReplaceAll(quoting, `"attributedTo":"p:/carol",`, ``),
		"that quotes another post": strings.ReplaceAll(quoting, `objects/1`, `objects/2`),
		"that quotes nothing":      strings.ReplaceAll(quoting, `"quote":`, `"see":`),
		"that is no post":          strings.ReplaceAll(quoting, `"Note"`, `"Person"`),
	} {
		body := strings.ReplaceAll(request, quoting, instrument)
		expect(t, s, name, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/alice/inbox", body) })
	}
}

// stampOf returns the id of the stamp that alice has made.
func stampOf(t *testing.T, s *peertest.Scene) string {
	t.Helper()
	return s.Column(t, s.Alice, `SELECT uri FROM objects WHERE raw ->> 'type' = 'QuoteAuthorization'`)[0]
}

// A quote has one stamp, even if it is requested again. After alice has taken the stamp back, it
// gets no other.
func TestAQuoteHasOneStampAndNoneOnceItWasTakenBack(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	again := func(n int) string { return strings.Replace(request, "requests/1", fmt.Sprintf("requests/%d", n), 1) }
	s.MustSend("p:/carol", "us:/alice/inbox", request)
	stamp := stampOf(t, s)
	answers := func() []string {
		return s.Column(t, s.Alice, `SELECT concat_ws(' ', type, raw ->> 'result') FROM activities WHERE direction = 'outbound' ORDER BY id`)
	}
	s.MustSend("p:/carol", "us:/alice/inbox", again(2))
	if got, want := answers(), []string{"Accept " + stamp, "Accept " + stamp}; !slices.Equal(got, want) {
		t.Errorf("asked twice, alice answers %q, want %q", got, want)
	}
	s.Act("", `{"id":"us:/alice/activities/d","type":"Delete","actor":"us:/alice","object":{"id":"`+stamp+`","type":"Tombstone"}}`)
	s.MustSend("p:/carol", "us:/alice/inbox", again(3))
	if got := answers(); len(got) != 3 || got[2] != "Reject" {
		t.Errorf("asked again after she took it back, alice answers %q", got)
	}
}

// A quote causes one event. The request or the post causes it, whichever arrives first.
func TestAQuoteIsToldOfOnce(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	create := createOf(strings.ReplaceAll(quoting, `"to":"as:Public"`, toAll), toAll)
	for name, order := range map[string][]string{"the request first": {request, create}, "the post first": {create, request}} {
		s := stage.Scene(t)
		s.Posts("us:/alice/objects/1", "as:Public")
		for n, body := range order {
			inbox := "us:/inbox"
			if n == 1 {
				inbox = "us:/alice/inbox"
			}
			s.MustSend("p:/carol", inbox, body)
		}
		if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type = 'quote.received'`); len(got) != 1 {
			t.Errorf("%s: %d events tell of the quote, want 1", name, len(got))
		}
	}
}

// A stamp counts if the server of the quoted post serves it, with the post's author as the stamp's
// author. It counts until that author takes it back. A post without a valid stamp is stored
// nevertheless.
func TestAQuoteIsApprovedByTheAuthorOfWhatItQuotes(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const (
		stamp  = `{"id":"q:/stamps/1","type":"QuoteAuthorization","attributedTo":"q:/dora","interactingObject":"p:/notes/q","interactionTarget":"q:/notes/1"}`
		quotes = `{"id":"p:/notes/q","type":"Note","attributedTo":"p:/carol","to":"as:Public","quote":"q:/notes/1","quoteAuthorization":"q:/stamps/1"}`
	)
	original := func(by string) func(*peertest.Scene) {
		return func(s *peertest.Scene) {
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"`+by+`","to":"as:Public","content":"one"}`)
		}
	}
	only := func(stamp string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Serve("q:/stamps/1", stamp) }
	}
	shown := func(stamp string) func(*peertest.Scene) { return both(original("q:/dora"), only(stamp)) }
	held := func(s *peertest.Scene) {
		s.MustSend("q:/dora", "us:/alice/inbox", `{"id":"q:/creates/1","type":"Create","actor":"q:/dora","to":"us:/alice","object":{"id":"q:/notes/1","type":"Note","attributedTo":"q:/dora","to":"us:/alice","content":"one"}}`)
	}
	for name, c := range map[string]struct {
		given func(*peertest.Scene)
		post  string
		want  string
	}{
		"that its server shows":                              {shown(stamp), quotes, "q:/stamps/1"},
		"that is not there":                                  {nil, quotes, ""},
		"whose server does not answer":                       {func(s *peertest.Scene) { s.Answer("q:/stamps/1", 503) }, quotes, ""},
		"of a post that its server does not show":            {only(stamp), quotes, ""},
		"of a post that its server does not show, but we do": {both(held, only(stamp)), quotes, "q:/stamps/1"},
		"whose post cannot be fetched now":                   {both(func(s *peertest.Scene) { s.Answer("q:/notes/1", 503) }, only(stamp)), quotes, ""},
		"of a post that is gone":                             {both(func(s *peertest.Scene) { s.Answer("q:/notes/1", 410) }, only(stamp)), quotes, ""},
		"by another actor of the server":                     {both(original("q:/mallory"), only(stamp)), quotes, ""},
		"by another actor of the server, which shows another post there": {both(func(s *peertest.Scene) {
			s.Serve("q:/notes/1", `{"id":"q:/notes/2","type":"Note","attributedTo":"q:/dora","to":"as:Public"}`)
			s.Serve("q:/notes/2", `{"id":"q:/notes/2","type":"Note","attributedTo":"q:/dora","to":"as:Public"}`)
		}, only(stamp)), quotes, ""},
		"for another quote":       {shown(strings.Replace(stamp, "p:/notes/q", "p:/notes/2", 1)), quotes, ""},
		"of another post":         {shown(strings.Replace(stamp, "q:/notes/1", "q:/notes/2", 1)), quotes, ""},
		"in somebody else's name": {shown(strings.Replace(stamp, "q:/dora", "p:/carol", 1)), quotes, ""},
		"of no author":            {shown(strings.Replace(stamp, `"attributedTo":"q:/dora",`, "", 1)), quotes, ""},
		"that is none":            {shown(strings.Replace(stamp, "QuoteAuthorization", "Note", 1)), quotes, ""},
		"of the quoting server":   {func(s *peertest.Scene) { s.Serve("p:/stamps/1", strings.Replace(stamp, "q:/stamps", "p:/stamps", 1)) }, strings.Replace(quotes, "q:/stamps", "p:/stamps", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			s.Follows("p:/carol")
			s.Actor("q:/dora")
			if c.given != nil {
				c.given(s)
			}
			claims := func() string {
				return s.Column(t, s.Alice, `SELECT coalesce(raw ->> 'quoteAuthorization', '') FROM objects WHERE uri = $1`, s.Long("p:/notes/q"))[0]
			}
			s.MustSend("p:/carol", "us:/inbox", createOf(c.post, toAll))
			if got := claims(); got != s.Long(c.want) {
				t.Errorf("the post claims %q, want %q", got, c.want)
			}
			s.MustSend("p:/carol", "us:/inbox", `{"id":"p:/updates/1","type":"Update","actor":"p:/carol","to":"as:Public","object":`+c.post+`}`)
			if got := claims(); got != s.Long(c.want) {
				t.Errorf("after an Update the post claims %q, want %q", got, c.want)
			}
			s.MustSend("q:/dora", "us:/inbox", `{"id":"q:/deletes/1","type":"Delete","actor":"q:/dora","to":"as:Public","object":"q:/stamps/1"}`)
			if got := claims(); got != "" {
				t.Errorf("after the stamp was deleted the post claims %q", got)
			}
		})
	}
}

// The Delete of a quoting post removes the post's words, even words that only the request
// contained.
func TestADeletedQuoteLeavesNoWords(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for to, body := range map[string]string{"as:Public": request, "p:/carol/followers": strings.Replace(request, "as:Public", "p:/carol/followers", 1),
		"as:Public, in a list": strings.Replace(request, quoting, "["+quoting+"]", 1)} {
		s := stage.Scene(t)
		s.Posts("us:/alice/objects/1", "as:Public")
		s.MustSend("p:/carol", "us:/alice/inbox", body)
		s.MustSend("p:/carol", "us:/alice/inbox", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/q"}`)
		held := s.Column(t, s.Alice, `SELECT concat(raw, readable) FROM objects UNION ALL SELECT raw::text FROM activities`)
		if slices.ContainsFunc(held, func(raw string) bool { return strings.Contains(raw, "<p>see") }) {
			t.Errorf("the words of a post for %s are in %q", to, held)
		}
	}
}
