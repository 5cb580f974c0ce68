package page

import (
	"html/template"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Thread is one of a person's posts, with the posts that it answers and the answers to it.
type Thread struct {
	Person Person
	Post   Post
	Above  []Post // the posts that it answers, the topmost first
	Below  []Post // the answers, the oldest first
	// IsLater is true for all pages except the first. They show the post in short form, and
	// nothing above the post.
	IsLater bool

	// Next returns the address of the answers after the first n, or "" if there are none.
	Next func(n int) string
}

// maxMain is the largest size of the post that a page is about, in bytes. maxOther is the
// largest size of any other post.
const (
	maxMain  = 36_000
	maxOther = 22_000
)

// HTML returns the page.
func (t Thread) HTML() []byte {
	type data struct {
		Head         head
		Person       Person
		Post         template.HTML
		Above, Below []template.HTML
		Next         string
	}
	d := data{Head: t.describeHead(), Person: t.Person, Post: asRendered(t.renderMain())}
	left := maxPage - len(renderTemplate("thread", d)) - room
	if !t.IsLater {
		d.Above = t.Person.fitLast(t.Above, left-maxOther)
		for _, part := range d.Above {
			left -= len(part)
		}
	}
	d.Below = t.Person.fitPosts(t.Below, left)
	d.Next = t.Next(len(d.Below))
	return renderTemplate("thread", d)
}

// renderMain returns the HTML of the post that the page is about.
func (t Thread) renderMain() []byte {
	if whole := t.Post.renderPost(t.Person, onItsOwn, true); len(whole) <= maxMain && !t.IsLater {
		return whole
	}
	return t.Post.renderPost(t.Person, amongOthers, true)
}

// fitLast returns, as HTML, as many of the last posts as the page has room for.
func (p Person) fitLast(posts []Post, bytes int) (shown []template.HTML) {
	for n := len(posts) - 1; n >= 0; n-- {
		part := posts[n].renderPost(p, amongOthers, false)
		if bytes -= len(part); bytes < 0 {
			break
		}
		shown = append([]template.HTML{asRendered(part)}, shown...)
	}
	return shown
}

func (t Thread) describeHead() head {
	p, post := t.Person, t.Post
	title := p.Name + " (" + p.Handle + ")"
	if name := vocab.OneLine(post.Doc.Text("name")); name != "" && post.warningWords(amongOthers) == "" {
		title = cutText(name, 100) + " – " + title
	}
	return head{Title: title, Description: post.describePost(200), Kind: "article", Site: p.Site, Page: post.Page, Document: string(post.ID), Feed: p.feedAddress(),
		Icon: p.Icon, Indexable: p.Indexable}
}
