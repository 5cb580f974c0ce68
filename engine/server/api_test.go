package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAPIAnswersOnlyToTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expired, digest := token.New(token.API, f.alice)
	past := start.Add(-time.Hour)
	if err := f.store.Instance.Tokens.Add(t.Context(), instance.Token{ID: uuid.New(), User: f.alice, Scopes: []string{"read"}, CreatedAt: past, ExpiresAt: &past}, digest); err != nil {
		t.Fatal(err)
	}
	suspended := f.user("suspended")
	theirs := f.token(suspended, "read")
	f.state(suspended, instance.UserSuspended)
	alices := f.token(f.alice, "read")
	action := header("Content-Type", "application/json")
	for _, c := range []struct {
		name, method, path string
		how                []asking
		status             int
		want               string
	}{
		{"no token", "GET", "/api/feed", nil, 401, "invalid_token"},
		{"an unknown token", "GET", "/api/feed", []asking{bearerToken("lw_alice_" + strings.Repeat("x", 43))}, 401, "invalid_token"},
		{"a token under another name", "GET", "/api/feed", []asking{bearerToken(strings.Replace(alices, "alice", "bob", 1))}, 401, "invalid_token"},
		{"no token at all", "GET", "/api/feed", []asking{bearerToken("x")}, 401, "invalid_token"},
		{"an expired token", "GET", "/api/feed", []asking{bearerToken(expired)}, 401, "invalid_token"},
		{"a suspended user's", "GET", "/api/feed", []asking{bearerToken(theirs)}, 401, "invalid_token"},
		{"another scheme", "GET", "/api/feed", []asking{header("Authorization", "Basic "+alices)}, 401, "invalid_token"},
		{"in the address", "GET", "/api/feed?access_token=" + alices, nil, 401, "invalid_token"},
		{"signed only", "GET", "/api/feed", []asking{f.signed(f.carolKey, signature.RFC9421)}, 401, "invalid_token"},
		{"for writing only", "GET", "/api/feed", []asking{bearerToken(f.token(f.alice, "write"))}, 403, "insufficient_scope"},
		{"for reading", "GET", "/api/feed", []asking{bearerToken(alices)}, 200, ""},
		{"in another case", "GET", "/api/feed", []asking{header("Authorization", "bearer "+alices)}, 200, ""},
		{"the LLM engine reads no messages of strangers", "GET", "/api/feed?feed=requests", []asking{bearerToken(f.token(f.alice, "llm"))}, 403, "insufficient_scope"},
		{"the LLM engine reads", "GET", "/api/feed", []asking{bearerToken(f.token(f.alice, "llm"))}, 200, ""},
		{"the description, with something it does not know", "GET", "/api/openapi.json?x=1", nil, 400, "bad_query"},
		{"and in the address", "GET", "/api/feed?access_token=" + alices, []asking{bearerToken(alices)}, 400, "bad_query"},
		{"reading does not write", "POST", "/api/activity", []asking{bearerToken(alices), action}, 403, "insufficient_scope"},
		{"nobody writes", "POST", "/api/activity", []asking{action}, 401, "invalid_token"},
		{"CLI-08 no method override", "POST", "/api/feed?_method=GET", []asking{bearerToken(alices), header("X-HTTP-Method-Override", "GET")}, 405, "method_not_allowed"},
	} {
		r := ask(t, f.public, c.method, c.path, `{"action":"CreateNote"}`, c.how...)
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
			continue
		}
		if c.want != "" && r.doc(t).Text("error") != c.want {
			t.Errorf("%s: %s, want error %s", c.name, r.body, c.want)
		}
		if (c.status == 401 || c.want == "insufficient_scope") && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), `Bearer error="`+c.want+`"`) {
			t.Errorf("%s: WWW-Authenticate %q, want Bearer with %s", c.name, r.Header.Get("WWW-Authenticate"), c.want)
		}
	}
	f.get("/api/feed?feed=requests", bearerToken(alices)).want(t, 200)
	if two := f.get("/api/feed", bearerToken(alices), func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+alices) }); two.StatusCode != 401 {
		t.Errorf("two tokens: %d, want 401", two.StatusCode)
	}
}

func TestATokenIsOfNoUseOnceItIsRevoked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second, bobs := f.token(f.alice, "read"), f.token(f.alice, "read"), f.token(f.bob, "read")
	for _, token := range []string{first, second, bobs} {
		f.get("/api/feed", bearerToken(token)).want(t, 200)
	}
	tokens, err := f.store.Instance.Tokens.List(t.Context(), f.alice)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.store.Instance.Tokens.Remove(t.Context(), f.alice, tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, token := range []string{first, second} {
		if f.get("/api/feed", bearerToken(token)).StatusCode == 200 {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("CLI-02: %d of two tokens hold after one was revoked, want 1", kept)
	}
	f.state(f.bob, instance.UserSuspended)
	f.get("/api/feed", bearerToken(bobs)).want(t, 401) // CLI-02b: the token is bob's
	f.state(f.bob, instance.UserActive)
	f.get("/api/feed", bearerToken(bobs)).want(t, 200)
}

// The server logs no token, wherever a client puts it and whichever error occurs.
func TestTokensAreNotLogged(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	f := newFixture(t, func(d *server.Deps) {
		d.Log = slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := f.token(f.alice, "read", "write")
	secret := token[len(token)-43:]
	inJSON := header("Content-Type", "application/json")
	f.outbox.err = errors.New("unexpected")
	for _, path := range []string{"/api/feed?access_token=" + token, "/api/feed?cursor=" + token, "/api/feed?" + token + "=%zz", "/api/feed/" + token, "/api/" + token,
		"/users/alice/objects/" + token, "/users/" + token, "/.well-known/webfinger?resource=" + token, "/users/alice/outbox?cursor=" + token} {
		f.get(path)
		f.get(path, bearerToken(token))
	}
	for _, how := range [][]asking{{bearerToken(token + "x")}, {bearerToken(strings.Replace(token, "alice", "bob", 1))}, {header("Authorization", token)}, {header("Authorization", "Basic "+token)},
		{header("Signature", token)}, {bearerToken(token), header("Idempotency-Key", token+token)}, {bearerToken(token), inJSON}, {bearerToken(token), header("Content-Type", token)}} {
		for _, body := range []string{`{"action":"CreateNote"}`, `{"action":"` + token + `"}`, `{"` + token + `":1}`, token} {
			f.send("/api/activity", body, how...)
			f.send("/inbox", body, how...)
		}
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if r := f.get("/api/feed", bearerToken(token), func(r *http.Request) { *r = *r.WithContext(gone) }); r.StatusCode < 500 {
		t.Errorf("while the database cannot be asked: %d", r.StatusCode)
	}
	if n := bytes.Count(logged.Bytes(), []byte("\n")); n < 40 || strings.Contains(logged.String(), secret) {
		i := max(strings.Index(logged.String(), secret), 0)
		t.Errorf("CLI-02: the log has %d lines, and holds the token: …%s", n, logged.String()[max(i-300, 0):min(i+100, logged.Len())])
	}
}

func TestFeedIsReadPageByPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []vocab.ID
	for i := range 5 {
		a, _ := f.post(f.alice, fmt.Sprint(i), start.Add(time.Duration(i)*time.Second), vocab.Public)
		want = append([]vocab.ID{a}, want...)
	}
	token := bearerToken(f.token(f.alice, "read"))
	var got []vocab.ID
	var page struct {
		Items []struct {
			ID          string
			ActivityURI vocab.ID `json:"activityUri"`
			Object      struct{ Source struct{ Content string } }
		}
		Next string
	}
	next := "/api/feed?limit=2"
	for next != "" {
		r := f.get(next, token).want(t, 200)
		page.Next = ""
		r.decode(t, &page)
		for _, i := range page.Items {
			got = append(got, i.ActivityURI)
		}
		link := r.Header.Get("Link")
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		if (page.Next == "") != (link == "") || !strings.Contains(link, page.Next) {
			t.Errorf("Link %q, want the cursor %q", link, page.Next)
		}
		if r.Header.Get("Cache-Control") != "private, no-cache" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Lightweb-Version") != "0.1.0" {
			t.Errorf("headers %v", r.Header)
		}
		f.get("/api/feed?limit=2", token, header("If-None-Match", f.get("/api/feed?limit=2", token).Header.Get("ETag"))).want(t, 304)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	id := page.Items[0].ID
	if r := f.get("/api/feed/"+id, token).want(t, 200); !strings.Contains(string(r.body), `"source":{"content":"0","mediaType":"text/plain"}`) {
		t.Errorf("%s, want the words in source", r.body)
	}
	// TEN-08: bob cannot see alice's item
	f.get("/api/feed/"+id, bearerToken(f.token(f.bob, "read"))).want(t, 404)
	f.get("/api/feed/"+strings.ToUpper(id), token).want(t, 404)
	theirs := f.get("/api/feed?limit=2", token).doc(t).Text("next")
	if r := f.get("/api/feed?cursor="+theirs, bearerToken(f.token(f.bob, "read"))).want(t, 400); r.doc(t).Text("error") != "bad_cursor" {
		t.Errorf("TEN-08: the cursor of somebody else: %s", r.body)
	}
	f.get("/api/feed/x", token).want(t, 404)
	f.get("/api/feed/"+id+"?x=1", token).want(t, 400)
	f.get("/api/feed?feed=notifications", token).want(t, 200)
	for query, status := range map[string]int{"feed=home": 404, "feed=": 404, "limit=0": 400, "limit=101": 400, "limit=-1": 400, "limit=x": 400, "limit=": 400,
		"cursor=x": 400, "page=2": 400, "limit=1&limit=2": 400, "a;b": 400, "%zz": 400} {
		if r := f.get("/api/feed?"+query, token); r.StatusCode != status {
			t.Errorf("?%s: %d, want %d: %s", query, r.StatusCode, status, r.body)
		}
	}
}

func TestActionsAreDispatchedOrRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	write := bearerToken(f.token(f.alice, "read", "write"))
	inJSON := header("Content-Type", "application/json")
	for _, c := range []struct {
		name, body string
		how        []asking
		err        error
		status     int
		want       string
		pointer    string
	}{
		{"an action", `{"action":"CreateNote","params":{"content":"x"}}`, nil, nil, 201, "", ""},
		{"with a charset", `{"action":"CreateNote"}`, []asking{header("Content-Type", "application/json; charset=UTF-8")}, nil, 201, "", ""},
		{"without params", `{"action":"CreateNote","params":null}`, nil, nil, 201, "", ""},
		{"CLI-06 an unknown action", `{"action":"explode","params":{}}`, nil, fault.New(fault.Unprocessable, "'explode' is not an action").WithCode("unknown_action").At("/action"), 422, "unknown_action", "/action"},
		{"CLI-06 CLI-07 more than action and params", `{"action":"CreateNote","actor":"https://example.org/users/bob"}`, nil, nil, 422, "unknown_parameter", "/actor"},
		{"CLI-06 in another case", `{"Action":"CreateNote"}`, nil, nil, 422, "unknown_parameter", "/Action"},
		{"a name that a pointer must escape", `{"a/b~":1}`, nil, nil, 422, "unknown_parameter", "/a~1b~0"},
		{"no action", `{"params":{}}`, nil, nil, 422, "unknown_action", "/action"},
		{"an action that is no text", `{"action":1}`, nil, nil, 422, "unknown_action", "/action"},
		{"params that are no object", `{"action":"CreateNote","params":[]}`, nil, nil, 422, "invalid_parameter", "/params"},
		{"not JSON", `{`, nil, nil, 400, "bad_json", ""},
		{"nothing", ``, nil, nil, 400, "bad_json", ""},
		{"PAR-05 a name twice", `{"action":"CreateNote","action":"DeleteObject"}`, nil, nil, 400, "bad_json", ""},
		{"PAR-08 words after it", `{"action":"CreateNote"} x`, nil, nil, 400, "bad_json", ""},
		{"PAR-02 nested too deep", `{"action":"x","params":` + strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 81), nil, nil, 400, "bad_json", ""},
		{"too large", `{"action":"` + strings.Repeat("x", 1<<20) + `"}`, nil, nil, 413, "too_large", ""},
		{"PAR-16 another media type", `{}`, []asking{header("Content-Type", "text/plain")}, nil, 415, "unsupported_media_type", ""},
		{"CLI-08 what a form can send", `{}`, []asking{header("Content-Type", "application/x-www-form-urlencoded")}, nil, 415, "unsupported_media_type", ""},
		{"no media type", `{}`, []asking{func(r *http.Request) { r.Header.Del("Content-Type") }}, nil, 415, "unsupported_media_type", ""},
		{"an encoding", `{}`, []asking{header("Content-Encoding", "gzip")}, nil, 415, "unsupported_media_type", ""},
		{"an empty key", `{"action":"CreateNote"}`, []asking{header("Idempotency-Key", "")}, nil, 400, "bad_idempotency_key", ""},
		{"a long key", `{"action":"CreateNote"}`, []asking{header("Idempotency-Key", strings.Repeat("k", 65))}, nil, 400, "bad_idempotency_key", ""},
		{"a key with a space", `{"action":"CreateNote"}`, []asking{header("Idempotency-Key", "a b")}, nil, 400, "bad_idempotency_key", ""},
		{"a cause that is no id", `{"action":"CreateNote"}`, []asking{header("Lightweb-Caused-By", "1771675203871-42")}, nil, 400, "bad_cause", ""},
		{"a cause without digits", `{"action":"CreateNote"}`, []asking{header("Lightweb-Caused-By", uuid.Nil.String())}, nil, 400, "bad_cause", ""},
		{"an empty cause", `{"action":"CreateNote"}`, []asking{header("Lightweb-Caused-By", "")}, nil, 400, "bad_cause", ""},
		{"a key used for something else", `{"action":"CreateNote"}`, []asking{header("Idempotency-Key", "k")}, fault.New(fault.Unprocessable, "no").WithCode("idempotency_key_reused"), 422, "idempotency_key_reused", ""},
		{"in flight", `{"action":"CreateNote"}`, nil, fault.New(fault.Conflict, "in flight"), 409, "conflict", ""},
		{"what the scope does not allow", `{"action":"DeleteObject"}`, []asking{bearerToken(f.token(f.alice, "llm"))}, outbox.ErrScope, 403, "insufficient_scope", ""},
	} {
		f.outbox.err, f.outbox.asked = c.err, outbox.Dispatch{}
		r := f.send("/api/activity", c.body, append([]asking{write, inJSON}, c.how...)...)
		if r.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", c.name, r.StatusCode, c.status, r.body)
			continue
		}
		if c.want == "" {
			continue
		}
		d := r.doc(t)
		at := ""
		if e := d.Subs("errors"); len(e) == 1 {
			at = e[0].Text("pointer")
		}
		if d.Text("error") != c.want || d["success"] != false || at != c.pointer {
			t.Errorf("%s: %s, want error %s at %q", c.name, r.body, c.want, c.pointer)
		}
		if errors.Is(c.err, outbox.ErrScope) && r.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", c.name)
		}
		if c.err == nil && f.outbox.asked.Action.Name != "" {
			t.Errorf("%s: %+v was dispatched", c.name, f.outbox.asked)
		}
	}
}

func TestDispatchTellsWhatBecameOfTheAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	write, inJSON := bearerToken(f.token(f.alice, "write")), header("Content-Type", "application/json")
	f.outbox.result = outbox.Result{ActivityID: "https://example.org/users/alice/activities/1", ObjectID: "https://example.org/users/alice/objects/1",
		Job: &outbox.Job{JobID: "019c8052-5f00-7000-8000-000000000007", Recipients: 3, Counts: user.JobCounts{Total: 2, Pending: 2}}}
	r := f.send("/api/activity", `{"params":{"b":1,"a":"<"},"action":"CreateNote"}`, write, inJSON, header("Idempotency-Key", "k-1"), header("Lightweb-Caused-By", "019aa7d4-5e2c-7c1b-9a53-1f2e3d4c5b6a")).want(t, 201)
	want := `{"success":true,"activityId":"https://example.org/users/alice/activities/1","objectId":"https://example.org/users/alice/objects/1","federationJob":{"jobId":"019c8052-5f00-7000-8000-000000000007","recipients":3,` +
		`"counts":{"total":2,"pending":2,"delivered":0,"failed":0,"skipped":0}}}`
	if diff := cmp.Diff(want, string(r.body)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Header.Get("Location") != "https://example.org/users/alice/activities/1" || r.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers %v", r.Header)
	}
	asked := f.outbox.asked
	if asked.User != f.alice || asked.Token == uuid.Nil || asked.Action.Name != "CreateNote" || string(asked.Action.Params) != `{"a":"<","b":1}` || asked.IdempotencyKey != "k-1" ||
		asked.CausedBy.String() != "019aa7d4-5e2c-7c1b-9a53-1f2e3d4c5b6a" {
		t.Errorf("dispatched %+v", asked)
	}
	f.outbox.result = outbox.Result{Replayed: true}
	r = f.send("/api/activity", `{"action":"CreateGroup"}`, write, inJSON).want(t, 201)
	if string(r.body) != `{"success":true}` || r.Header.Get("Idempotent-Replayed") != "true" || r.Header.Get("Location") != "" {
		t.Errorf("%v %s, want a replay about nothing that has an id", r.Header, r.body)
	}
}
