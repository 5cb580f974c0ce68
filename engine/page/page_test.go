package page

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

var update = flag.Bool("update", false, "rewrite the golden pages")

var noon = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

func alice() Person {
	return Person{Name: "Alice", Handle: "@alice@example.org", Site: "example.org", Actor: "https://example.org/users/alice", Page: "https://example.org/@alice",
		About: "<p>Bees &amp; <b>more</b></p>", Icon: "https://example.org/users/alice/media/a.png", Fields: []Field{{"Home", "https://alice.example/"}, {"Mood", "calm"}},
		TagPage: func(tag string) string {
			return "https://example.org/@alice/tags/" + url.PathEscape(strings.ToLower(tag))
		}}
}

// write returns a post. The post has the document that vocab.Show would return.
func write(n int, doc string) Post {
	d, err := vocab.ParseDoc([]byte(doc))
	if err != nil {
		panic(err)
	}
	p := alice()
	return Post{ID: vocab.ID(fmt.Sprint("https://example.org/users/alice/objects/", n)), Page: fmt.Sprint(p.Page, "/", n), Author: Author{p.Name, p.Handle, p.Page}, IsOwn: true,
		Published: noon.Add(time.Duration(-n) * time.Hour), Now: noon, Doc: vocab.Show(d, vocab.Readable(d, nil), nil)}
}

func never(int) string { return "" }

// sample returns posts of every kind.
func sample() []Post {
	changed := write(2, `{"type":"Article","name":"On bees","content":"<p>They <em>hum</em>.</p>","tag":[{"type":"Hashtag","name":"#Bees"}],"lwTags":["Bees","slow food"]}`)
	changed.Updated = noon.Add(time.Hour)
	answer := write(3, `{"type":"Note","content":"<p>Yes.</p>"}`)
	answer.Answers = "https://peer.example/notes/1"
	return []Post{
		write(1, `{"type":"Note","content":"<p>Hello <a href=\"https://peer.example/\" rel=\"nofollow\">you</a></p>"}`), changed, answer,
		write(4, `{"type":"Note","summary":"spoilers","sensitive":true,"content":"<p>The bee did it.</p>",
			"attachment":[{"type":"Image","url":"https://img.example/a.png","name":"A bee, sleeping"},{"type":"Document","mediaType":"application/pdf","url":"https://img.example/b.pdf"}]}`),
		write(5, `{"type":"Question","content":"<p>Which?</p>","oneOf":[{"type":"Note","name":"honey","replies":{"type":"Collection","totalItems":3}},{"type":"Note","name":"wax"}],"endTime":"2026-03-01T00:00:00Z"}`),
		write(6, `{"type":"Video","name":"A cat","content":"<p>It sleeps.</p>","url":[{"type":"Link","href":"https://v.example/cat.mp4","mediaType":"video/mp4"},{"type":"Link","href":"https://example.org/@alice/6","mediaType":"text/html"}]}`),
	}
}

func next(n int) string { return fmt.Sprint("https://example.org/@alice?cursor=", n) }

func TestPagesAreAsTheGoldenOnes(t *testing.T) {
	t.Parallel()
	posts := sample()
	answer := write(9, `{"type":"Note","content":"<p>No.</p>","tag":[{"type":"Hashtag","name":"#their"}]}`)
	answer.Author, answer.IsOwn, answer.Page = Author{"Bob", "@bob@peer.example", "https://peer.example/bob"}, false, "https://peer.example/notes/9"
	for name, got := range map[string][]byte{
		"list.html":   List{Person: alice(), Posts: posts, Next: next}.HTML(),
		"tag.html":    List{Person: alice(), Posts: posts[1:2], Tag: "bees", Next: never}.HTML(),
		"thread.html": Thread{Person: alice(), Post: posts[1], Above: posts[:1], Below: []Post{answer}, Next: next}.HTML(),
		"notice.html": Notice("example.org", "This is gone", "It was here."),
		"feed.atom":   List{Person: alice(), Posts: posts, Next: next}.Atom("https://example.org/@alice/feed.atom"),
	} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not as it was; after a look at it: go test ./engine/page -update\n%s", name, got)
		}
	}
}

func TestAPollSaysWhetherItIsOpen(t *testing.T) {
	t.Parallel()
	const earlier, later = "2026-02-20T12:00:00Z", "2026-02-22T12:00:00Z"
	for _, tt := range []struct{ name, fields, want string }{
		{"before its end", `,"endTime":"` + later + `"`, "Open until 2026-02-22 12:00 UTC"},
		{"after its end", `,"endTime":"` + earlier + `"`, "Closed 2026-02-20 12:00 UTC"},
		{"closed before its end", `,"endTime":"` + later + `","closed":"` + earlier + `"`, "Closed 2026-02-20 12:00 UTC"},
		{"ended before it closes", `,"endTime":"` + earlier + `","closed":"` + later + `"`, "Closed 2026-02-20 12:00 UTC"},
		{"closes later", `,"closed":"` + later + `"`, "Open until 2026-02-22 12:00 UTC"},
		{"closed at no time", `,"endTime":"` + later + `","closed":true`, "Closed"},
		{"never closed", `,"closed":false`, ""},
	} {
		post := write(1, `{"type":"Question","content":"<p>Which?</p>","oneOf":[{"type":"Note","name":"honey"}]`+tt.fields+`}`)
		if _, got := post.readPoll(onItsOwn); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Hostile text in any place of a page is shown as text.
func TestHostileWordsStayWords(t *testing.T) {
	t.Parallel()
	const evil = `"><script>evil()</script><img src=x onerror=evil()>'` + "\u202e"
	quoted := string(vocab.AppendText(nil, evil))
	p := alice()
	p.Name, p.About = vocab.OneLine(evil), `<script>evil()</script><b onclick="evil()">b</b><img src="https://evil.example/"><style>*{}</style>`
	p.Fields = []Field{{evil, evil}, {"link", `javascript:evil()`}, {"link", `https://x.example/"onmouseover="evil()`}}
	post := write(1, `{"type":"Article","name":`+quoted+`,"summary":`+quoted+`,"content":`+quoted+`,"tag":[{"type":"Hashtag","name":`+quoted+`}],
		"oneOf":[{"type":"Note","name":`+quoted+`}],"attachment":[{"type":"Image","name":`+quoted+`,"url":"javascript:evil()"},
			{"type":`+quoted+`,"mediaType":`+quoted+`,"name":`+quoted+`,"url":"https://x.example/\"onmouseover=\"evil()"},{"type":"Image","url":"data:text/html,evil"}]}`)
	post.Doc["content"] = `<p onclick="evil()">x</p><script>evil()</script><iframe src="https://evil.example/"></iframe><a href="javascript:evil()">a</a>` // this content is not sanitized
	post.Answers = "javascript:evil()"
	foreign := post
	foreign.IsOwn, foreign.Page, foreign.Author = false, "javascript:evil()", Author{evil, evil, "data:text/html,evil"}
	pages := map[string]string{
		"list":   string(List{Person: p, Posts: []Post{post, foreign}, Tag: evil, Next: never}.HTML()),
		"thread": string(Thread{Person: p, Post: post, Above: []Post{foreign}, Below: []Post{foreign}, Next: never}.HTML()),
	}
	for name, got := range pages {
		for _, bad := range []string{"<script", "<iframe", "<img src=x", "evil.example", "onclick=", `"onmouseover="`, "href=\"javascript", "href=\"data", "<style>*", "src=\"javascript"} {
			if strings.Contains(got, bad) {
				t.Errorf("%s has %s:\n%s", name, bad, got)
			}
		}
		title, _, _ := strings.Cut(got, "</title>")
		if strings.Contains(title, "\u202e") {
			t.Errorf("%s turns the direction of its title", name)
		}
	}
	feed := List{Person: p, Posts: []Post{post}, Next: never}.Atom("x")
	var read atomFeed
	if err := xml.Unmarshal(feed, &read); err != nil {
		t.Fatalf("%v\n%s", err, feed)
	}
	if text := read.Entries[0].Content.Text; strings.Contains(text, "script") || strings.Contains(text, "onclick") || strings.Contains(text, "iframe") {
		t.Errorf("the feed has %s", text)
	}
}

// huge returns the largest post that the bounds of posts and of their parts permit.
func huge(n int) Post {
	long := strings.Repeat(`"<'&+é`, 10_000)
	tags, files, options := []any{}, []any{}, []any{}
	for i := range 64 {
		tags = append(tags, vocab.Doc{"type": "Hashtag", "name": fmt.Sprint("#", i, strings.Repeat("𐍈", 60))})
		files = append(files, vocab.Doc{"type": "Image", "name": long, "url": fmt.Sprint("https://x.example/", i, strings.Repeat(`"`, 250))})
		options = append(options, vocab.Doc{"type": "Note", "name": long})
	}
	p := write(n, `{"type":"Article"}`)
	p.Doc = vocab.Doc{"name": long, "summary": long, "content": vocab.TextToHTML(long, func(vocab.Span) string { return "" }), "source": vocab.Doc{"content": long},
		"tag": tags, "attachment": files, "oneOf": options}
	p.Author.Name = strings.Repeat(`"`, 1000)
	return p
}

func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	p := alice()
	p.Name, p.About = strings.Repeat("+", 100), vocab.TextToHTML(strings.Repeat(`"<+`, 1666), func(vocab.Span) string { return "" })
	p.Fields = nil
	for range 16 {
		p.Fields = append(p.Fields, Field{strings.Repeat("+", 255), "https://x.example/" + strings.Repeat(`+`, 2000)})
	}
	var posts, plain []Post
	for n := range 20 {
		posts = append(posts, huge(n))
		plain = append(plain, write(n, `{"type":"Note","content":"<p>`+strings.Repeat("bees ", 12_000)+`</p>","tag":[{"type":"Hashtag","name":"#bees"}]}`))
	}
	var shown int
	count := func(n int) string { shown = n; return strings.Repeat("c", 200) }
	for name, make := range map[string]func() []byte{
		"list":              List{Person: p, Posts: posts, Next: count}.HTML,
		"list of texts":     List{Person: alice(), Posts: plain, Next: count}.HTML,
		"feed":              func() []byte { return List{Person: p, Posts: posts, Next: count}.Atom("x") },
		"thread":            Thread{Person: p, Post: huge(1), Above: posts, Below: posts, Next: count}.HTML,
		"later page of one": Thread{Person: p, Post: huge(1), Below: posts, IsLater: true, Next: count}.HTML,
	} {
		shown = 0
		got := make()
		if len(got) > 64_000 || shown < 1 {
			t.Errorf("%s has %d bytes and %d posts", name, len(got), shown)
		}
		if name == "list of texts" && shown != 20 {
			t.Errorf("%s shows %d of 20 posts", name, shown)
		}
	}
}

// If posts do not fit on a page, they are on the next pages, in their order.
func TestTheNextPageBeginsBehindTheLastPostThatFits(t *testing.T) {
	t.Parallel()
	var posts []Post
	for n := range 20 {
		posts = append(posts, huge(n))
	}
	seen, pages := "", 0
	for len(posts) > 0 {
		shown := 0
		html := string(List{Person: alice(), Posts: posts, Next: func(n int) string { shown = n; return "" }}.HTML())
		for _, m := range regexp.MustCompile(`href="https://example.org/@alice/(\d+)"><time`).FindAllStringSubmatch(html, -1) {
			seen += " " + m[1]
		}
		posts, pages = posts[shown:], pages+1
	}
	if seen != " 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19" || pages < 2 {
		t.Errorf("%d pages show%s", pages, seen)
	}
}

// The tag is part of a page's address, and anybody can invent one. So a page shows the tag only if
// it has a post. A page without posts may still have a next page.
func TestAPageWithoutPostsDoesNotShowItsTag(t *testing.T) {
	t.Parallel()
	for _, shown := range [][]Post{nil, sample()[1:2]} {
		html := string(List{Person: alice(), Posts: shown, Tag: "made-up words", Next: next}.HTML())
		if strings.Contains(html, "made-up words") != (len(shown) > 0) || !strings.Contains(html, `rel="next"`) {
			t.Errorf("with %d posts the page is %s", len(shown), html)
		}
	}
}

func TestAWarningHidesThePostBehindIt(t *testing.T) {
	t.Parallel()
	html := string(Thread{Person: alice(), Post: sample()[3], Next: never}.HTML())
	before, after, found := strings.Cut(html, "<details><summary><bdi>spoilers</bdi></summary>")
	if !found || strings.Contains(before, "The bee did it") || !strings.Contains(after, "The bee did it") || strings.Contains(before, "A bee, sleeping") {
		t.Errorf("the page is %s", html)
	}
}

func TestOnlyPeopleWhoWantItAreListedBySearchEngines(t *testing.T) {
	t.Parallel()
	for _, indexable := range []bool{true, false} {
		p := alice()
		p.Indexable = indexable
		for name, html := range map[string][]byte{"list": List{Person: p, Next: never}.HTML(), "thread": Thread{Person: p, Post: sample()[0], Next: never}.HTML()} {
			if strings.Contains(string(html), `<meta name="robots" content="noindex">`) == indexable {
				t.Errorf("%s with indexable %t: %s", name, indexable, html)
			}
		}
	}
}

// A page has one style. The content security policy contains the hash of the style and allows no
// scripts.
func TestThePolicyLetsTheStyleThroughAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, html := range [][]byte{List{Person: alice(), Posts: sample(), Next: never}.HTML(), Notice("example.org", "x", "y")} {
		styles := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllSubmatch(html, -1)
		if len(styles) != 1 {
			t.Fatalf("%d styles", len(styles))
		}
		sum := sha256.Sum256(styles[0][1])
		if hash := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(ContentPolicy(), "style-src 'sha256-"+hash+"'") {
			t.Errorf("the style has the hash %s, the policy is %s", hash, ContentPolicy())
		}
		if strings.Contains(string(html), " style=") {
			t.Error("the page has styles of elements, which the policy refuses")
		}
	}
	if p := ContentPolicy(); strings.Contains(p, "script") || strings.Contains(p, "unsafe") || !strings.HasPrefix(p, "default-src 'none';") {
		t.Errorf("the policy is %s", p)
	}
}

func TestTheFeedIsAtom(t *testing.T) {
	t.Parallel()
	posts := sample()
	var f atomFeed
	if err := xml.Unmarshal(List{Person: alice(), Posts: posts, Next: next}.Atom("https://example.org/@alice/feed.atom"), &f); err != nil {
		t.Fatal(err)
	}
	if f.ID != alice().Actor || f.Title == "" || f.Updated != "2026-02-21T13:00:00Z" || f.Author.Name != "Alice" || len(f.Links) != 3 {
		t.Errorf("the feed is %+v", f)
	}
	for n, e := range f.Entries {
		if e.ID != posts[n].ID || e.Title == "" || e.Published == "" || e.Updated == "" || e.Content.Type != "html" || len(e.Links) != 1 || e.Links[0].Href != posts[n].Page {
			t.Errorf("entry %d is %+v", n, e)
		}
	}
	if e := f.Entries[1]; len(e.Categories) != 2 || e.Categories[0].Term != "Bees" || e.Title != "On bees" || e.Updated != "2026-02-21T13:00:00Z" {
		t.Errorf("the article is %+v", e)
	}
	if e := f.Entries[3]; e.Summary != "spoilers" || e.Title != "spoilers" {
		t.Errorf("a post with a warning is %+v", e)
	}
	var empty atomFeed
	if err := xml.Unmarshal(List{Person: alice(), Next: never}.Atom("x"), &empty); err != nil || empty.Updated == "" {
		t.Errorf("a feed without posts is %+v, %v", empty, err)
	}
}

func BenchmarkPage(b *testing.B) {
	var posts []Post
	for n := range 20 {
		posts = append(posts, sample()[n%6])
	}
	for name, make := range map[string]func() []byte{
		"list":   List{Person: alice(), Posts: posts, Next: next}.HTML,
		"thread": Thread{Person: alice(), Post: posts[1], Above: posts[:5], Below: posts, Next: next}.HTML,
		"feed":   func() []byte { return List{Person: alice(), Posts: posts, Next: next}.Atom("x") },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				make()
			}
			b.ReportMetric(float64(len(make())), "B/page")
		})
	}
}
