package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// If a request has a quota, the answer says how large the quota is and how much is left, even if
// nothing is left.
func TestProgramsAreToldWhatIsLeft(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	read, llm := bearerToken(f.token(f.alice, "read")), bearerToken(f.token(f.alice, "llm"))
	_, note := f.post(f.alice, "needle", start, vocab.Public)
	left := func(r response, policy, limit string) {
		t.Helper()
		if r.Header.Get("RateLimit-Policy") != policy || r.Header.Get("RateLimit") != limit {
			t.Errorf("answered with %q and %q, want %q and %q", r.Header.Get("RateLimit-Policy"), r.Header.Get("RateLimit"), policy, limit)
		}
	}
	left(f.get("/api/search?q=needle", read).want(t, 200), `"searches";q=30;w=30`, `"searches";r=29;t=1`)
	for f.get("/api/search?q=needle", read).StatusCode == 200 {
		continue
	}
	refused := f.get("/api/search?q=needle", read).want(t, 429)
	left(refused, `"searches";q=30;w=30`, `"searches";r=0;t=30`)
	if refused.Header.Get("Retry-After") == "" {
		t.Error("a program is not told when to come again")
	}
	left(f.get("/api/objects?uri="+string(note), read).want(t, 200), `"lookups";q=60;w=60`, `"lookups";r=60;t=0`)
	f.outbox.found = f.carol
	left(f.get("/api/actors?uri="+string(f.carol.ID), read).want(t, 200), `"lookups";q=60;w=60`, `"lookups";r=59;t=1`)
	left(f.get("/api/objects/thread?uri="+string(note), read).want(t, 200), `"lookups";q=60;w=60`, `"lookups";r=59;t=1`)
	like := f.send("/api/activity", `{"action":"Like","params":{}}`, llm, header("Content-Type", "application/json")).want(t, 201)
	left(like, `"hour";q=60;w=3600, "day";q=500;w=86400`, `"hour";r=59;t=60, "day";r=499;t=0`)
	left(f.get("/api/me", read).want(t, 200), "", "")
}

// Finding an actor asks other servers, and so does claiming an actor's key package. The two share
// one quota.
func TestClaimsOfKeyPackagesCountAsLookups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.outbox.found = f.carol
	token := bearerToken(f.token(f.alice, "read", "write"))
	for f.get("/api/actors?uri="+string(f.carol.ID), token).StatusCode == 200 {
		continue
	}
	r := f.send("/api/keypackages/claim", `{"actor":"`+string(f.carol.ID)+`"}`, token, header("Content-Type", "application/json")).want(t, 429)
	if r.Header.Get("RateLimit") != `"lookups";r=0;t=60` || r.Header.Get("Retry-After") == "" {
		t.Errorf("a claim beyond the bound is told %v", r.Header)
	}
}

// An LLM engine uses up only its own quotas. The quotas of the user's programs and of other LLM
// engines are not affected.
func TestAnAssistantUsesUpNoQuotaOfItsUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.outbox.found = f.carol
	read, llm, other := bearerToken(f.token(f.alice, "read")), bearerToken(f.token(f.alice, "llm")), bearerToken(f.token(f.alice, "llm"))
	_, note := f.post(f.alice, "needle", start, vocab.Public)
	for path, quota := range map[string]string{"/api/actors?uri=" + string(f.carol.ID): "lookups", "/api/search?q=needle": "searches"} {
		for f.get(path, llm).StatusCode == 200 {
			continue
		}
		f.get(path, llm).want(t, 429)
		for _, sender := range []func(*http.Request){read, other} {
			if r := f.get(path, sender).want(t, 200); !strings.Contains(r.Header.Get("RateLimit"), `"`+quota+`";r=`) || strings.Contains(r.Header.Get("RateLimit"), ";r=0;") {
				t.Errorf("%s leaves %s", path, r.Header.Get("RateLimit"))
			}
		}
	}
	for _, path := range []string{"/api/objects?uri=", "/api/objects/thread?uri="} { // these requests cost nothing; their answers say how much is left
		if r := f.get(path+string(note), llm).want(t, 200); r.Header.Get("RateLimit") != `"lookups";r=0;t=60` {
			t.Errorf("%s tells the LLM engine that it has %s", path, r.Header.Get("RateLimit"))
		}
	}
}

// A page of a list has a Link to the next page. Its ETag stays the same until the list changes.
func TestListsLeadOnAndAreTagged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	for n := range 3 {
		f.post(f.alice, "needle", at(n), vocab.Public)
		f.relate(f.alice, user.Following, user.Accepted, vocab.ID("https://peer.example/users/"+strings.Repeat("x", n+1)), at(n))
		f.owe(f.alice, n+1, "peer.example")
	}
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		for n := range 3 {
			if err := tx.Audits.Add(ctx, user.Audit{At: at(n), Action: "Like", Params: vocab.Doc{}.JSON(), Outcome: "ok"}); err != nil {
				return err
			}
		}
		return nil
	})
	read := bearerToken(f.token(f.alice, "read", "admin"))
	for _, path := range []string{"/api/feed?", "/api/relationships?", "/api/deliveries?", "/api/audit?", "/api/search?q=needle&"} {
		r := f.get(path+"limit=1", read).want(t, 200)
		if link := r.Header.Get("Link"); !strings.HasSuffix(link, `; rel="next"`) || !strings.HasPrefix(link, "<"+path[:strings.Index(path, "?")]+"?") {
			t.Errorf("%s leads on to %q", path, link)
		}
		f.get(path+"limit=1", read, header("If-None-Match", r.Header.Get("ETag"))).want(t, 304)
	}
}

// Opening a conversation with an actor counts as a lookup.
func TestConversationsThatAreOpenedCountAsLookups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.outbox.found = f.carol
	token := bearerToken(f.token(f.alice, "read", "write"))
	open := func() response {
		return f.send("/api/conversations", `{"with":"`+string(f.carol.ID)+`"}`, token, header("Content-Type", "application/json"))
	}
	opened := 0
	for range 61 {
		if open().StatusCode == 429 {
			break
		}
		opened++
	}
	if opened != 60 {
		t.Errorf("%d conversations could be opened, want 60", opened)
	}
	if r := open().wantCode(t, 429, "rate_limited"); r.Header.Get("RateLimit") != `"lookups";r=0;t=60` {
		t.Errorf("one more is told %v", r.Header)
	}
}
