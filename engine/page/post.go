package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Post is an object that a page shows.
type Post struct {
	ID        vocab.ID
	Page      string // the address where people read it
	Author    Author
	IsOwn     bool   // the person of the page wrote it
	Answers   string // the address of the object that it answers; empty if none, or on the page
	Published time.Time
	Updated   time.Time // zero: it was never changed
	Now       time.Time // when the page is made
	Doc       vocab.Doc // as vocab.Show returns it
}

// limits restrict how much is shown of a post. The fields html and link count bytes. The fields
// tags, files and options count items, and the other fields count characters.
type limits struct {
	html, excerpt, line, link int
	tags, files, options      int
}

// A post on its own page has more room than a post among other posts.
var (
	amongOthers = limits{html: 2_000, excerpt: 400, line: 100, link: 300, tags: 6, files: 4, options: 8}
	onItsOwn    = limits{html: 20_000, excerpt: 4_000, line: 500, link: 2_000, tags: 64, files: 16, options: 20}
)

// view is a post in the form that the template needs.
type view struct {
	Author                          Author
	Page, Answers                   string
	Published, PublishedAt, Updated string
	Title, Warning, Excerpt, Closes string
	Content                         template.HTML
	Tags, Files                     []link
	MoreFiles                       int
	Options                         []option
	IsMain, IsOwn                   bool
}

type link struct{ Name, Link string }

type option struct {
	Name  string
	Votes int64
}

// renderPost returns the HTML of a post within limits.
func (p Post) renderPost(person Person, most limits, isMain bool) []byte {
	v := view{Author: p.Author, Page: p.Page, Answers: p.Answers, IsMain: isMain, IsOwn: p.IsOwn,
		Published: formatTime(p.Published), PublishedAt: p.Published.UTC().Format(time.RFC3339),
		Title: cutText(vocab.OneLine(p.Doc.Text("name")), most.line), Warning: p.warningWords(most)}
	v.Author.Name, v.Author.Handle = cutText(p.Author.Name, 60), cutText(p.Author.Handle, 100)
	if !p.Updated.IsZero() {
		v.Updated = formatTime(p.Updated)
	}
	v.Content, v.Excerpt = p.chooseContent(most)
	v.Files, v.MoreFiles = p.listFiles(most)
	v.Options, v.Closes = p.readPoll(most)
	if p.IsOwn {
		for _, tag := range firstOf(p.listTags(), most.tags) {
			v.Tags = append(v.Tags, link{tag, person.TagPage(tag)})
		}
	}
	return renderTemplate("post", v)
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// chooseContent returns the text as HTML, or the beginning of a long text as plain text.
func (p Post) chooseContent(most limits) (html template.HTML, excerpt string) {
	content := p.Doc.Text("content")
	if len(content) <= most.html {
		if html = sanitizeHTML(content); len(html) <= most.html {
			return html, ""
		}
	}
	return "", cutText(p.plainText(), most.excerpt)
}

// plainText returns the text without HTML.
func (p Post) plainText() string { return p.Doc.Sub("source").Text("content") }

// warningWords returns the warning that hides the post, or "" if the post has none.
func (p Post) warningWords(most limits) string {
	if warning := cutText(vocab.OneLine(p.Doc.Text("summary")), most.line); warning != "" {
		return warning
	}
	if p.Doc.Flag("sensitive") {
		return "Sensitive"
	}
	return ""
}

// describePost returns the post's warning. If there is none, it returns the beginning of the
// post's text as one line.
func (p Post) describePost(characters int) string {
	if warning := p.warningWords(amongOthers); warning != "" {
		return warning
	}
	return cutText(vocab.OneLine(p.plainText()), characters)
}

// listTags returns the names of the post's tags, each once and without its #.
func (p Post) listTags() (names []string) {
	for _, tag := range p.Doc.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Hashtag" {
			names = addName(names, tag.Text("name"))
		}
	}
	free, _ := p.Doc["lwTags"].([]any)
	for _, tag := range free {
		name, _ := tag.(string)
		names = addName(names, name)
	}
	return names
}

func addName(names []string, name string) []string {
	name = cutText(strings.TrimPrefix(vocab.OneLine(name), "#"), 64)
	if name == "" || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
		return names
	}
	return append(names, name)
}

// listFiles returns links to the files that the post shows or consists of. If there are too
// many, it returns the first ones, and how many more there are. The page loads none of them.
func (p Post) listFiles(most limits) (files []link, more int) {
	for _, d := range p.Doc.Subs("url") {
		if kind := d.Text("mediaType"); kind != "text/html" {
			files = addFile(files, d, kind, most)
		}
	}
	for _, d := range p.Doc.Subs("attachment") {
		files = addFile(files, d, fileKind(d), most)
	}
	shown := firstOf(files, most.files)
	return shown, len(files) - len(shown)
}

func addFile(files []link, d vocab.Doc, kind string, most limits) []link {
	address := d.Text("url")
	for _, l := range append(d.Subs("url"), d) {
		if address == "" {
			address = l.Text("href")
		}
	}
	if len(address) > most.link || !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return files
	}
	name := cutText(kind, 40)
	if alt := cutText(vocab.OneLine(d.Text("name")), most.line); alt != "" {
		name += ": " + alt
	}
	return append(files, link{name, address})
}

func fileKind(d vocab.Doc) string {
	if kind, err := d.Type(); err == nil && kind != "" && kind != "Document" {
		return kind
	}
	if kind := d.Text("mediaType"); kind != "" {
		return kind
	}
	return "File"
}

// readPoll returns the options of a poll, and says until when it is open or when it was closed.
func (p Post) readPoll(most limits) (options []option, closes string) {
	for _, d := range firstOf(append(p.Doc.Subs("oneOf"), p.Doc.Subs("anyOf")...), most.options) {
		votes, _ := d.Sub("replies").Count("totalItems")
		options = append(options, option{cutText(vocab.OneLine(d.Text("name")), most.line), votes})
	}
	at, isClosed := vocab.ClosingOf(p.Doc)
	switch {
	case isClosed:
		return options, "Closed"
	case at.IsZero():
		return options, ""
	case p.Now.Before(at):
		return options, fmt.Sprint("Open until ", formatTime(at))
	}
	return options, fmt.Sprint("Closed ", formatTime(at))
}

// cutText returns s unchanged if it has at most the given number of characters. Otherwise it
// returns that many characters from the beginning of s, with an ellipsis.
func cutText(s string, characters int) string {
	if len(s) <= characters || utf8.RuneCountInString(s) <= characters {
		return s
	}
	n := 0
	for at := range s {
		if n == characters {
			return s[:at] + "…"
		}
		n++
	}
	return s
}

func firstOf[T any](all []T, n int) []T { return all[:min(len(all), n)] }
