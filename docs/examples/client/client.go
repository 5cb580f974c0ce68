// Package client serves the example client: a page of plain HTML, CSS and JavaScript. The engine
// serves it in its demonstration only.
package client

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed index.html client.css *.js
var files embed.FS

//go:embed index.html
var page []byte

// Path is the path below which the client is served. Nothing else may be served there.
const Path = "/client/"

// packagesPath is the path below which the page's import map finds ts-mls and its dependencies.
const packagesPath = Path + "packages/"

// HasPackages reports whether folder is a node_modules in which ts-mls is installed.
func HasPackages(folder fs.FS) bool {
	_, err := fs.Stat(folder, "ts-mls/dist/src/index.js")
	return err == nil
}

// Handler serves the example client below Path. packages is the node_modules folder with
// ts-mls, and only its JavaScript is served. If packages is nil, the page has no encrypted
// conversations.
func Handler(packages fs.FS) http.Handler {
	policy, own := makePolicy(), http.StripPrefix(Path, http.FileServerFS(files))
	modules := http.NotFoundHandler()
	if packages != nil {
		modules = http.StripPrefix(packagesPath, http.FileServerFS(packages))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		switch {
		case !strings.HasPrefix(r.URL.Path, packagesPath):
			own.ServeHTTP(w, r)
		case path.Ext(r.URL.Path) == ".js":
			modules.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// makePolicy returns a policy that allows the page to run its own scripts and call its own
// server, and nothing else. Not even pictures may come from other servers, because those would
// learn who reads what. The policy names the hash of the import map, because the import map is an
// inline script. It has to be inline, because browsers accept an import map only in the page
// itself.
func makePolicy() string {
	_, after, _ := bytes.Cut(page, []byte(`<script type="importmap">`))
	imports, _, _ := bytes.Cut(after, []byte("</script>"))
	hash := sha256.Sum256(imports)
	return "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; style-src 'self'; " +
		"img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
