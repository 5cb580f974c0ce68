package engine_test

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// quote is a post that quotes another post, as the API shows it to a user.
type quote struct {
	Quote              string
	QuoteAuthorization string
	LwQuoteRefused     bool
}

func quoteAs(t *testing.T, u *enginetest.User, post string) quote {
	t.Helper()
	var shown struct{ Object quote }
	a := u.Ask(t, http.MethodGet, "/api/objects?uri="+url.QueryEscape(post), nil)
	if a.Status == http.StatusOK {
		a.Decode(t, &shown)
	}
	return shown.Object
}

// quinn quotes three posts of quill's. quill approves the first quote and revokes the approval,
// does not approve the second, and ends the third approval with a block.
func quotesAreApproved(t *testing.T, quinn, quill *enginetest.User) {
	befriend(t, quill, quinn)
	quotes := func(content string) (post string) {
		t.Helper()
		_, original := quill.Post(t, map[string]any{"content": content, "visibility": "public"})
		_, post = quinn.Post(t, map[string]any{"content": "see", "visibility": "public", "quote": original})
		if got := quoteAs(t, quinn, post).Quote; got != original {
			t.Fatalf("the post quotes %q, want %q", got, original)
		}
		return post
	}
	shows := func(what, post string, is func(quote) bool) (last quote) {
		t.Helper()
		for _, u := range []*enginetest.User{quinn, quill} {
			enginetest.Eventually(t, u.Name+" is shown "+what, func() bool { last = quoteAs(t, u, post); return is(last) })
		}
		return last
	}
	settles := func(quotes, may string) {
		t.Helper()
		quill.Configure(t, `{"quotes":"`+quotes+`"}`)
		enginetest.Eventually(t, "what quill writes says that "+quotes+" may quote it", func() bool {
			_, post := quill.Post(t, map[string]any{"content": "trying", "visibility": "public"})
			return bytes.Contains(enginetest.Fetch(t, post).Body, []byte(`"interactionPolicy":{"canQuote":{"automaticApproval":["`+may+`"]}}`))
		})
	}
	isApproved := func(q quote) bool { return q.QuoteAuthorization != "" && !q.LwQuoteRefused }
	isNot := func(q quote) bool { return q.Quote != "" && q.QuoteAuthorization == "" }
	isRefused := func(post string) {
		t.Helper()
		enginetest.Eventually(t, quinn.Name+" is told that it is refused", func() bool { q := quoteAs(t, quinn, post); return q.LwQuoteRefused && isNot(q) })
		shows("no approval", post, isNot)
	}

	first := quotes("one")
	quill.Await(t, "notifications", "the quote", func(i enginetest.Item) bool { return i.Type == "QuoteRequest" || i.Type == "Create" })
	stamp := shows("the approval", first, isApproved).QuoteAuthorization
	if got := enginetest.Fetch(t, stamp); got.Status != http.StatusOK {
		t.Fatalf("the stamp is answered %d %s", got.Status, got.Body)
	}
	told := slices.DeleteFunc(quill.Feed(t, "notifications"), func(i enginetest.Item) bool { return i.Type == "Accept" })
	if len(told) != 1 || told[0].ActorURI != quinn.ID {
		t.Errorf("quill is notified of %+v, want the quote once", told)
	}
	quill.Do(t, "RevokeQuote", map[string]any{"objectId": first})
	if got := enginetest.Fetch(t, stamp); got.Status != http.StatusNotFound {
		t.Errorf("the stamp that was taken back is answered %d", got.Status)
	}
	isRefused(first)

	settles("nobody", quill.ID)
	isRefused(quotes("two"))

	settles("followers", quill.ID+"/followers")
	befriend(t, quinn, quill)
	third := quotes("three")
	stamp = shows("the approval of a follower's", third, isApproved).QuoteAuthorization
	quill.Do(t, "Block", map[string]any{"actorUri": quinn.ID})
	if got := enginetest.Fetch(t, stamp); got.Status != http.StatusNotFound {
		t.Errorf("the stamp for who is blocked is answered %d", got.Status)
	}
}
