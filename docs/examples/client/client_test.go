package client

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/lightweb/lightweb/engine/enginetest/browsertest"
)

// Every answer has a Content-Security-Policy, with which a browser runs only the page's scripts.
func TestEveryFileComesWithThePolicy(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/client/": "text/html; charset=utf-8", "/client/client.css": "text/css; charset=utf-8", "/client/client.js": "text/javascript; charset=utf-8",
		"/client/client.go": "text/plain; charset=utf-8", "/client/README.md": "text/plain; charset=utf-8",
	} {
		w := httptest.NewRecorder()
		Handler(nil).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
		if isPage := want[:10] != "text/plain"; isPage != (w.Code == http.StatusOK) {
			t.Errorf("%s is answered %d", path, w.Code)
		}
		if got := w.Header().Get("Content-Security-Policy"); got != makePolicy() {
			t.Errorf("%s comes with the policy %q", path, got)
		}
	}
}

// Of the packages, only the JavaScript files are served. They have the same policy. A browser
// accepts the import map, because the policy contains its hash.
func TestThePackagesAreServedWhereTheImportMapSays(t *testing.T) {
	t.Parallel()
	packages := fstest.MapFS{"ts-mls/package.json": {Data: []byte("{}")}}
	for _, specifier := range []string{"ts-mls/dist/src/index.js", "ts-mls/dist/src/keyPackage.js", "@hpke/core/esm/mod.js", "@hpke/common/esm/mod.js", "@noble/ciphers/aes.js", "@noble/hashes/sha2.js"} {
		packages[specifier] = &fstest.MapFile{Data: []byte("export default " + strconv.Quote(specifier))}
	}
	if !HasPackages(packages) || HasPackages(fstest.MapFS{}) {
		t.Error("a folder with ts-mls is not told from one without")
	}
	srv := httptest.NewServer(Handler(packages))
	t.Cleanup(srv.Close)
	page := browsertest.Start(t).Open(t, srv.URL+Path)
	for specifier, want := range map[string]string{
		"ts-mls": "ts-mls/dist/src/index.js", "ts-mls/keyPackage.js": "ts-mls/dist/src/keyPackage.js", "@hpke/core": "@hpke/core/esm/mod.js",
		"@hpke/common": "@hpke/common/esm/mod.js", "@noble/ciphers/aes.js": "@noble/ciphers/aes.js", "@noble/hashes/sha2.js": "@noble/hashes/sha2.js",
	} {
		var got string
		if page.Run(t, `import(`+strconv.Quote(specifier)+`).then((module) => module.default)`, &got); got != want {
			t.Errorf("%s is %s, want %s", specifier, got, want)
		}
	}
	if all := page.Complaints(); len(all) > 0 {
		t.Errorf("the policy forbids it: %v", all)
	}
	for name, h := range map[string]http.Handler{"packages/ts-mls/package.json": Handler(packages), "packages/ts-mls/": Handler(packages), "packages/ts-mls/dist/src/index.js": Handler(nil)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+name, nil))
		if w.Code != http.StatusNotFound || w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s is answered %d, with the policy %q", name, w.Code, w.Header().Get("Content-Security-Policy"))
		}
	}
}

// The client shows only those elements of HTML that its list allows. They keep the formatting of
// text. Elements and attributes that could run a script are removed.
func TestHTMLOfOthersIsReducedToText(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(nil))
	t.Cleanup(srv.Close)
	page := browsertest.Start(t).Open(t, srv.URL+Path)
	page.Await(t, "the client asks for a token", `document.querySelector("#login:not([hidden])")`)
	for _, html := range slices.Sorted(maps.Keys(reduced)) {
		var got string
		page.Run(t, `import("/client/html.js").then(({ sanitize }) => {
			const box = document.createElement("div")
			box.append(sanitize(`+"`"+html+"`"+`))
			document.body.append(box)
			return box.innerHTML
		})`, &got)
		if want := reduced[html]; got != want {
			t.Errorf("%s\nis shown as %s\nwant        %s", html, got, want)
		}
	}
	var isTaken bool
	if page.Run(t, "Boolean(window.taken)", &isTaken); isTaken {
		t.Error("a script of somebody else's ran")
	}
}

// A restart of a server loses an answer and ends a stream. The client then repeats the request
// with the same key, and continues the stream after the id of the last event that it got.
func TestWhatIsLostOnTheWayIsAskedForAgain(t *testing.T) {
	t.Parallel()
	keys, resumed := make(chan string, 2), make(chan string, 2)
	mux := http.NewServeMux()
	mux.Handle(Path, Handler(nil))
	mux.HandleFunc("POST /api/activity", func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		if len(keys) == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `{"success":true}`)
	})
	mux.HandleFunc("GET /api/events", func(w http.ResponseWriter, r *http.Request) {
		resumed <- r.Header.Get("Last-Event-ID")
		if len(resumed) == 2 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, "event: hello\ndata: {\"type\":\"hello\",\"cursor\":\"1-4\"}\n\nid: 1-5\ndata: {\"id\":\"1-5\",\"type\":\"like.received\"}\n\n: \n\nid: 1-6\nda")
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	page := browsertest.Start(t).Open(t, srv.URL+Path)
	var isDone bool
	page.Run(t, `import("/client/api.js").then(({ act }) => act("Like", {})).then(({ success }) => success)`, &isDone)
	if first, second := <-keys, <-keys; !isDone || first == "" || first != second {
		t.Errorf("the action is done: %v, under the keys %q and %q, want one", isDone, first, second)
	}
	var seen []string
	page.Run(t, `import("/client/api.js").then(async ({ listen }) => {
		const seen = []
		await listen(({ type }) => seen.push(type), new AbortController().signal).catch(({ status }) => seen.push(String(status)))
		return seen
	})`, &seen)
	if first, second := <-resumed, <-resumed; first != "" || second != "1-5" || !slices.Equal(seen, []string{"hello", "like.received", "401"}) {
		t.Errorf("the streams begin after %q and %q and tell %v", first, second, seen)
	}
}

// reduced maps HTML to the part of it that the client shows.
var reduced = map[string]string{
	`<p>Hello <b class="x" onclick="taken = 1" style="color: red">you</b></p>`:  `<p>Hello <b>you</b></p>`,
	`<a href="https://peer.example/a?b=1&amp;c" onmouseover="taken = 1">it</a>`: `<a href="https://peer.example/a?b=1&amp;c" rel="nofollow noreferrer noopener" target="_blank">it</a>`,
	`<a href="javascript:taken = 1">it</a><a href="/client/">here</a>`:          `<a>it</a><a>here</a>`,
	`<a href=" JaVaScRiPt:taken = 1">it</a><a href="data:text/html,x">it</a>`:   `<a>it</a><a>it</a>`,
	`<script>taken = 1</script>a<style>* { display: none }</style>`:             `a`,
	`<img src=x onerror="taken = 1"><iframe srcdoc="x"></iframe>b`:              `b`,
	`<svg><a href="javascript:taken = 1"><text>c</text></a></svg>d`:             `d`,
	`<form action="/x"><input name="token"><button>Sign in</button></form>e`:    `e`,
	`<h1>Title</h1><ul><li>one<!-- no --></li></ul>`:                            `<h3>Title</h3><ul><li>one</li></ul>`,
	`<template><p>f</p></template>1 &lt; 2`:                                     `1 &lt; 2`,
}
