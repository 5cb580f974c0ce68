// Package client serves the example client: a page of plain HTML, CSS and JavaScript. The engine
// serves it in its demonstration only.
package client

import (
	"embed"
	"net/http"
)

//go:embed index.html client.css *.js
var files embed.FS

// Path is where the client is served: below it nothing else may be.
const Path = "/client/"

// contentPolicy lets the page run its own scripts and ask its own server, and nothing else: not
// even pictures come from elsewhere, whose servers would learn who reads what.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler returns what answers below Path.
func Handler() http.Handler {
	serve := http.StripPrefix(Path, http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
