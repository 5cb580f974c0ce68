package page

import (
	"html/template"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// List holds the posts of a person, either all or those with a tag. It becomes a page of HTML or
// a page of the Atom feed.
type List struct {
	Person Person
	Tag    string // empty for all
	Posts  []Post

	// Next returns the address of the posts after the first n, or "" if there are none.
	Next func(n int) string
}

// room is the number of bytes of a page that are reserved for the address of the next page.
const room = 1_000

// HTML returns the page.
func (l List) HTML() []byte {
	type data struct {
		Head   head
		Person Person
		About  template.HTML
		Fields []fieldView
		Tag    string
		Posts  []template.HTML
		Next   string
	}
	d := data{Head: l.describeHead(), Person: l.Person, About: showAbout(l.Person), Fields: showFields(l.Person.Fields)}
	if len(l.Posts) > 0 { // otherwise the tag may be words that somebody put into the address
		d.Tag = cutText(vocab.OneLine(l.Tag), 64)
	}
	d.Posts = l.Person.fitPosts(l.Posts, maxPage-len(renderTemplate("list", d))-room)
	d.Next = l.Next(len(d.Posts))
	return renderTemplate("list", d)
}

func (l List) describeHead() head {
	p := l.Person
	h := head{Title: p.Name + " (" + p.Handle + ")", Description: cutText(vocab.OneLine(vocab.HTMLToText(p.About)), 200), Kind: "profile", Site: p.Site,
		Page: p.Page, Document: p.Actor, Feed: p.feedAddress(), Icon: p.Icon, Indexable: p.Indexable}
	if l.Tag != "" {
		h.Page, h.Document = p.TagPage(l.Tag), ""
	}
	return h
}

// fitPosts returns, as HTML, as many of the first posts as the page has room for, but at least
// one.
func (p Person) fitPosts(posts []Post, bytes int) (shown []template.HTML) {
	for _, post := range posts {
		part := post.renderPost(p, amongOthers, false)
		if bytes -= len(part); bytes < 0 && len(shown) > 0 {
			break
		}
		shown = append(shown, asRendered(part))
	}
	return shown
}

// maxAbout is the size of the longest description of a person on a page, in bytes of HTML.
const maxAbout = 6_000

// showAbout returns a person's own description. If the description is longer than maxAbout, it
// returns the beginning as plain text.
func showAbout(p Person) template.HTML {
	if html := sanitizeHTML(p.About); len(html) <= maxAbout {
		return html
	}
	return sanitizeHTML(vocab.TextToHTML(cutText(vocab.HTMLToText(p.About), maxAbout/6), func(vocab.Span) string { return "" }))
}

type fieldView struct{ Name, Value, Link string }

// showFields returns the lines of a profile. A value that is an https address becomes a link,
// unless it has more than amongOthers.link bytes.
func showFields(lines []Field) (shown []fieldView) {
	for _, f := range lines {
		v := fieldView{Name: cutText(vocab.OneLine(f.Name), 60), Value: cutText(vocab.OneLine(f.Value), 120)}
		if _, err := vocab.ParseID(f.Value); err == nil && strings.HasPrefix(f.Value, "https://") && len(f.Value) <= amongOthers.link {
			v.Link = f.Value
		}
		shown = append(shown, v)
	}
	return shown
}
