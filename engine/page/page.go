// Package page writes the pages and the Atom feed on which people read a user's public posts. It
// reads no database and no request: the caller passes all that may be shown.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the templates
	"encoding/base64"
	"html/template"

	"github.com/lightweb/lightweb/engine/vocab"
)

// maxPage is the size of the largest page or feed, in bytes. If posts are large, a page shows
// fewer of them.
const maxPage = 64_000

// Person is the user that a page is about.
type Person struct {
	Name      string // of one line
	Handle    string // such as @alice@example.org
	Site      string // the host of this server
	Actor     string // the id of the person's actor
	Page      string // the address of the page about the person
	About     string // HTML
	Icon      string // the address of a picture on this server, or nothing
	Image     string // the address of a wide picture on this server, or nothing
	Fields    []Field
	Indexable bool // search engines may list the pages

	TagPage func(tag string) string // the address of the page of a tag
}

// Field is a line of a profile, such as a home page.
type Field struct{ Name, Value string }

// feedAddress returns the address of the person's Atom feed.
func (p Person) feedAddress() string { return p.Page + "/feed.atom" }

// Author is the author of a post.
type Author struct {
	Name   string // of one line
	Handle string
	Page   string
}

var (
	//go:embed page.html
	source string
	//go:embed style.css
	style string
	//go:embed favicon.svg
	favicon []byte

	pages = template.Must(template.New("").Parse(source + `{{define "style"}}<style>` + style + `</style>{{end}}`))
)

// Favicon returns the picture of this server, as SVG.
func Favicon() []byte { return favicon }

// ContentPolicy returns the Content-Security-Policy of every page: it allows no script, and
// nothing is loaded except pictures of this server.
func ContentPolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// head has the data for the beginning and the end of a page.
type head struct {
	Title, Description, Kind, Site string
	Page, Document, Feed, Icon     string // addresses; some may be empty
	Indexable                      bool
}

// renderTemplate writes a template. It panics on an error, which is a mistake in the template.
func renderTemplate(name string, data any) []byte {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		panic("page: a template cannot be written: " + err.Error())
	}
	return b.Bytes()
}

// sanitizeHTML returns HTML that is safe on a page. All HTML from outside goes through it.
func sanitizeHTML(html string) template.HTML { return template.HTML(vocab.Sanitize(html)) }

// asRendered returns a part of a page that was rendered before.
func asRendered(part []byte) template.HTML { return template.HTML(part) }

// Notice returns a page that says why there is nothing to read.
func Notice(site, title, text string) []byte {
	return renderTemplate("notice", struct {
		Head head
		Text string
	}{head{Title: title, Description: text, Kind: "website", Site: site}, text})
}
