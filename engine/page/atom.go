package page

import (
	"encoding/xml"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// atomFeed is an Atom feed (RFC 4287), or a page of one (RFC 5005 §3).
type atomFeed struct {
	XMLName  xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID       string      `xml:"id"`
	Title    string      `xml:"title"`
	Subtitle string      `xml:"subtitle,omitempty"`
	Updated  string      `xml:"updated"`
	Author   atomAuthor  `xml:"author"`
	Icon     string      `xml:"icon,omitempty"`
	Links    []atomLink  `xml:"link"`
	Entries  []atomEntry `xml:"entry"`
}

type atomAuthor struct {
	Name string `xml:"name"`
	URI  string `xml:"uri"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Type string `xml:"type,attr,omitempty"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID         vocab.ID       `xml:"id"`
	Title      string         `xml:"title"`
	Published  string         `xml:"published"`
	Updated    string         `xml:"updated"`
	Links      []atomLink     `xml:"link"`
	Categories []atomCategory `xml:"category"`
	Summary    string         `xml:"summary,omitempty"`
	Content    atomContent    `xml:"content"`
}

type atomCategory struct {
	Term string `xml:"term,attr"`
}

type atomContent struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

const atomType = "application/atom+xml"

// Atom returns the posts as a page of the person's Atom feed. The parameter self is the address of
// that page.
func (l List) Atom(self string) []byte {
	p := l.Person
	f := atomFeed{ID: p.Actor, Title: p.Name + " (" + p.Handle + ")", Subtitle: l.describeHead().Description, Updated: time.Unix(0, 0).UTC().Format(time.RFC3339),
		Author: atomAuthor{p.Name, p.Page}, Icon: p.Icon,
		Links: []atomLink{{"self", atomType, self}, {"alternate", "text/html", p.Page}}}
	left := maxPage - len(marshalPart(f)) - room
	for _, post := range l.Posts {
		entry := post.buildEntry()
		if left -= len(marshalPart(entry)); left < 0 && len(f.Entries) > 0 {
			break
		}
		f.Entries = append(f.Entries, entry)
	}
	for _, e := range f.Entries {
		// All times have the same form and zone, so the greater text is the later time.
		f.Updated = max(f.Updated, e.Updated)
	}
	if next := l.Next(len(f.Entries)); next != "" {
		f.Links = append(f.Links, atomLink{"next", atomType, next})
	}
	return append([]byte(xml.Header), marshalPart(f)...)
}

// buildEntry returns the post as an entry of the feed. The title is never empty, because some
// feed readers show nothing else.
func (p Post) buildEntry() atomEntry {
	e := atomEntry{ID: p.ID, Title: cutText(vocab.OneLine(p.Doc.Text("name")), 100), Published: p.Published.UTC().Format(time.RFC3339),
		Links: []atomLink{{"alternate", "text/html", p.Page}}, Summary: p.warningWords(amongOthers), Content: atomContent{Type: "html"}}
	e.Updated = e.Published
	if !p.Updated.IsZero() {
		e.Updated = p.Updated.UTC().Format(time.RFC3339)
	}
	if e.Title == "" {
		e.Title = p.describePost(80)
	}
	if e.Title == "" {
		e.Title = "Post of " + formatTime(p.Published)
	}
	for _, tag := range firstOf(p.listTags(), amongOthers.tags) {
		e.Categories = append(e.Categories, atomCategory{tag})
	}
	html, excerpt := p.chooseContent(amongOthers)
	if e.Content.Text = string(html); excerpt != "" {
		e.Content.Text = vocab.TextToHTML(excerpt, func(vocab.Span) string { return "" })
	}
	return e
}

// marshalPart writes a part of a feed as XML. It replaces characters that XML cannot have.
func marshalPart(part any) []byte {
	b, err := xml.Marshal(part)
	if err != nil {
		panic("page: a feed cannot be written: " + err.Error()) // cannot happen, because a part holds nothing but texts
	}
	return b
}
