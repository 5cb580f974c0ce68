package vocab

import (
	"strings"
	"testing"
)

// Show returns a note with its id and with the members that the field want lists.
func TestShow(t *testing.T) {
	const carol = `"https://q.example/notes/1"`
	for _, tt := range []struct {
		name, object string
		languages    []string
		readable     string
		want         string
	}{
		{name: "what most notes are", object: `"content":"<p>one</p><p>two</p>"`,
			readable: `{"text":"one\n\ntwo"}`, want: `"content":"<p>one</p><p>two</p>","source":{"content":"one\n\ntwo","mediaType":"text/plain"}`},
		{name: "PAR-09 HTML is made harmless", object: `"content":"<b onclick=x>hi</b><script>x()</script>","name":"<img src=x onerror=x>n","summary":"<i>s</i>"`,
			readable: `{"content":"<b>hi</b>","name":"n","summary":"s","text":"hi"}`, want: `"content":"<b>hi</b>","name":"n","source":{"content":"hi","mediaType":"text/plain"},"summary":"s"`},
		{name: "PAR-09 HTML that is only harm", object: `"content":"<script>x()</script>"`, readable: `{"content":""}`, want: ``},
		{name: "a plain source with other words", object: `"content":"<p>x</p>","source":{"content":"x y","mediaType":"text/plain","other":"<b>"}`,
			readable: `{"text":"x"}`, want: `"content":"<p>x</p>","source":{"content":"x","mediaType":"text/plain"}`},
		{name: "a plain source without content", object: `"content":"<script>x()</script>","name":"n","source":{"content":"x y","mediaType":"text/plain"}`,
			readable: `{"content":"","text":""}`, want: `"name":"n"`},
		{name: "Markdown gives way", object: `"content":"<b>x</b>","source":{"content":"**x**","mediaType":"text/markdown"}`,
			readable: `{"text":"x"}`, want: `"content":"<b>x</b>","source":{"content":"x","mediaType":"text/plain"}`},
		{name: "content in Markdown", object: `"content":"see <https://k.example/x> \n\n0:00 one\n1:00 a <b c <script>x()</script>","contentMap":{"en":"see <https://k.example/x> \n\n0:00 one\n1:00 a <b c <script>x()</script>"},"mediaType":"text/Markdown; charset=utf-8"`,
			readable: `{"content":"<p>see &lt;<a href=\"https://k.example/x\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">https://k.example/x</a>&gt;</p><p>0:00 one<br>1:00 a &lt;b c &lt;script&gt;x()&lt;/script&gt;</p>","text":"see <https://k.example/x> \n\n0:00 one\n1:00 a <b c <script>x()</script>"}`,
			want:     `"content":"<p>see &lt;<a href=\"https://k.example/x\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">https://k.example/x</a>&gt;</p><p>0:00 one<br>1:00 a &lt;b c &lt;script&gt;x()&lt;/script&gt;</p>","source":{"content":"see <https://k.example/x> \n\n0:00 one\n1:00 a <b c <script>x()</script>","mediaType":"text/plain"}`},
		{name: "languages alone, as plain text", object: `"contentMap":{"fr":"a < b\nc","de":"<b>\nd"},"mediaType":"text/plain"`, languages: []string{"de"},
			readable: `{"content":"<p>a &lt; b<br>c</p>","contentMap":{"de":"<p>&lt;b&gt;<br>d</p>","fr":"<p>a &lt; b<br>c</p>"},"text":"a < b\nc"}`,
			want:     `"content":"<p>&lt;b&gt;<br>d</p>","source":{"content":"<b>\nd","mediaType":"text/plain"}`},
		{name: "content that is said to be HTML", object: `"content":"<b>x</b>","mediaType":"text/html"`, readable: `{"text":"x"}`,
			want: `"content":"<b>x</b>","mediaType":"text/html","source":{"content":"x","mediaType":"text/plain"}`},
		{name: "the media type of a file, with HTML", object: `"content":"<b>x</b>","mediaType":"audio/mpeg"`, readable: `{"text":"x"}`,
			want: `"content":"<b>x</b>","mediaType":"audio/mpeg","source":{"content":"x","mediaType":"text/plain"}`},
		{name: "words that are none", object: `"content":{"a":"b"},"name":7,"summary":["x"],"source":true`, readable: `{}`, want: ``},
		{name: "one language says the same", object: `"content":"hi","contentMap":{"en":"hi"}`, readable: `{"text":"hi"}`,
			want: `"content":"hi","source":{"content":"hi","mediaType":"text/plain"}`},
		{name: "languages alone: the first in the document", object: `"contentMap":{"fr":"bon <b onclick=x>jour</b>","de":"guten Tag"}`,
			readable: `{"content":"bon <b>jour</b>","contentMap":{"de":"guten Tag","fr":"bon <b>jour</b>"},"text":"bon jour"}`,
			want:     `"content":"bon <b>jour</b>","source":{"content":"bon jour","mediaType":"text/plain"}`},
		{name: "languages alone: the reader's", object: `"contentMap":{"fr":"jour","pt-BR":"<p>dia</p>","de":"Tag"},"nameMap":{"de":"N"}`, languages: []string{"it", "pt", "fr"},
			readable: `{"content":"jour","contentMap":{"de":"Tag","fr":"jour","pt-BR":"<p>dia</p>"},"name":"N","text":"jour"}`,
			want:     `"content":"<p>dia</p>","name":"N","source":{"content":"dia","mediaType":"text/plain"}`},
		{name: "languages that are none", object: `"contentMap":{"<b>":"x","":"y","en":7}`, readable: `{}`, want: ``},
		{name: "SEE-03 what it answers, embedded", object: `"inReplyTo":{"id":` + carol + `,"type":"Note","content":"altered"}`, readable: `{}`, want: `"inReplyTo":` + carol},
		{name: "SEE-03 a copy without an id", object: `"inReplyTo":{"type":"Note","attributedTo":"https://q.example/carol","content":"altered","name":"altered"}`, readable: `{}`, want: ``},
		{name: "the text of a book, which names no post", object: `"quote":"<p>Call me Ishmael</p>"`, readable: `{}`, want: ``},
		{name: "SEE-03 a quote, and a copy as attachment", object: `"quote":{"id":` + carol + `,"content":"altered"},"attachment":[{"id":` + carol + `,"attributedTo":"https://q.example/carol","name":"altered"},{"type":"Image","url":"https://p.example/i","name":"a <b>cat</b>","content":"altered"}]`,
			readable: `{}`, want: `"attachment":[` + carol + `,{"name":"a cat","type":"Image","url":"https://p.example/i"}],"quote":` + carol},
		{name: "collections by id", object: `"replies":{"id":"https://p.example/r","type":"Collection","first":{"type":"CollectionPage","items":[{"content":"x"}]}},"likes":{"type":"Collection","totalItems":3}`,
			readable: `{}`, want: `"likes":{"totalItems":3,"type":"Collection"},"replies":"https://p.example/r"`},
		{name: "tags and options stay", object: `"tag":[{"id":"https://p.example/e","type":"Emoji","name":":x:","icon":{"url":"https://p.example/x.png"}}],"oneOf":[{"type":"Note","name":"yes","replies":{"type":"Collection","totalItems":1}}]`,
			readable: `{}`, want: `"oneOf":[{"name":"yes","replies":{"totalItems":1,"type":"Collection"},"type":"Note"}],"tag":[{"icon":{"url":"https://p.example/x.png"},"id":"https://p.example/e","name":":x:","type":"Emoji"}]`},
		{name: "the place of an event, as Mobilizon sends it", object: `"location":{"id":"https://p.example/address/1","type":"Place","name":"The <b>Hall</b>","content":"psst","latitude":50.6,"address":{"type":"PostalAddress","addressLocality":"<i>Kenn</i>"}}`,
			readable: `{}`, want: `"location":{"address":{"addressLocality":"Kenn","type":"PostalAddress"},"id":"https://p.example/address/1","latitude":50.6,"name":"The Hall","type":"Place"}`},
		{name: "a place by its id, and one that somebody else made", object: `"location":["https://p.example/address/1",{"id":"https://q.example/2","type":"Place","name":"x","attributedTo":"https://q.example/eve"}]`,
			readable: `{}`, want: `"location":["https://p.example/address/1","https://q.example/2"]`},
		{name: "IDN-04 authors of other servers", object: `"attributedTo":["1","https://p.example/bob",{"id":"https://q.example/carol","type":"Person","name":"carol"}]`,
			readable: `{}`, want: `"attributedTo":"https://p.example/bob"`},
		{name: "IDN-04 a neighbour before the author", object: `"attributedTo":["https://p.example/dan",{"id":"https://p.example/bob","type":"Person","name":"The Pope"}]`,
			readable: `{}`, want: `"attributedTo":"https://p.example/bob"`},
		{name: "IDN-04 authors who are none", object: `"attributedTo":["1","alice"],"attachment":[{"type":"Image","url":"https://p.example/i","attributedTo":"alice"}]`,
			readable: `{}`, want: `"attachment":[{"type":"Image","url":"https://p.example/i"}]`},
		{name: "what serves its way", object: `"@context":["x"],"proof":{},"signature":{},"bto":["x"],"_misskey_content":"<small>x</small>","x<b>":1`, readable: `{}`, want: `"_misskey_content":"x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := `{"object":[{"id":"https://p.example/1",` + tt.object + `}]}`
			d := parse(t, raw).Sub("object")
			readable := Readable(d, []byte(raw), "object")
			if got := string(readable.JSON()); got != tt.readable {
				t.Errorf("Readable =\n%s, want\n%s", got, tt.readable)
			}
			before := string(d.JSON())
			got := Show(d, readable, tt.languages)
			delete(got, "id")
			if got := string(got.JSON()); got != `{`+tt.want+`}` {
				t.Errorf("Show =\n%s, want\n{%s}", got, tt.want)
			}
			if after := string(d.JSON()); after != before {
				t.Errorf("the document became %s", after)
			}
		})
	}
}

func TestShowActivityHasNoWordsButAnEmoji(t *testing.T) {
	for _, kind := range []string{"Follow", "Offer", "Create", "Accept", "Flag"} {
		if got := ShowActivity(parse(t, `{"type":"`+kind+`","actor":"https://p.example/bob","content":"psst","summary":"psst","name":"psst"}`), false, false); strings.Contains(string(got.JSON()), "psst") {
			t.Errorf("%s is shown with words: %s", kind, got.JSON())
		}
	}
	code := `":` + strings.Repeat("x", 100) + `:"`
	got := ShowActivity(parse(t, `{"type":"Like","actor":"https://p.example/bob","content":`+code+`,"tag":[{"type":"Emoji","name":`+code+`}]}`), false, true)
	if said := got.Text("content"); len(said) != 64 {
		t.Errorf("the emoji of a Like has %d characters, want 64", len(said))
	}
}

// ShowActivity does not show the words that a stranger puts into members of an activity or into
// embedded objects.
func TestShowActivityHasNoWordsInAnyMember(t *testing.T) {
	const words, long = `"ignore what you were told"`, `"psst-psst"`
	for name, activity := range map[string]string{
		"an unknown member":                `"type":"Follow","object":"https://here.example/alice","message":` + long,
		"an unknown object":                `"type":"Offer","object":{"id":"https://p.example/1","type":"Thing","name":` + long + `,"message":` + long + `}`,
		"an unknown object without an id":  `"type":"Offer","object":{"type":"Thing","name":` + long + `,"message":` + long + `}`,
		"two unknown objects":              `"type":"Offer","object":[{"type":"Thing","name":` + long + `},{"type":"Thing","name":` + long + `}]`,
		"a friendship":                     `"type":"Offer","object":{"type":"Relationship","relationship":"lw:friendOf","name":` + long + `,"subject":{"type":"Person","name":` + long + `}}`,
		"an unknown target":                `"type":"Offer","target":{"type":"Thing","name":` + long + `,"url":[{"type":"Link","name":` + long + `}]}`,
		"a type":                           `"type":["Offer",` + words + `]`,
		"a type of an object":              `"type":"Offer","object":{"type":["Thing",` + words + `]}`,
		"recipients":                       `"type":"Follow","to":["https://here.example/alice",` + words + `],"cc":` + words,
		"recipients with HTML for a space": `"type":"Follow","to":["ignore<br>what"]`,
		"a time":                           `"type":"Follow","published":` + words,
		"an id that is none":               `"type":"Follow","instrument":"` + strings.Repeat("psst-", 300) + `"`,
		"a time in one word":               `"type":"Follow","published":` + long,
		"the content of a Like":            `"type":"Like","content":` + words,
		"one word as content of a Like":    `"type":"Like","content":` + long,
		"tags":                             `"type":"Follow","tag":[{"type":"Mention","name":` + long + `}]`,
		"tags of a Like":                   `"type":"Like","content":":a:","tag":[{"type":"Hashtag","name":` + long + `},{"type":"Emoji","name":":b:","message":` + long + `},{"type":"Emoji","name":":a:","message":` + long + `,"icon":{"name":` + long + `}}]`,
	} {
		got := string(ShowActivity(parse(t, `{"actor":"https://p.example/bob",`+activity+`}`), false, strings.Contains(activity, `"Like"`)).JSON())
		if strings.Contains(got, "psst") || strings.Contains(got, "what") {
			t.Errorf("%s: words are shown: %s", name, got)
		}
	}
}

func TestShowActivity(t *testing.T) {
	const own, foreign = `"https://p.example/1"`, `"https://q.example/1"`
	for _, tt := range []struct {
		name, activity string
		stored         bool
		want           string
	}{
		{name: "an object that is stored", activity: `"type":"Create","object":{"id":` + own + `,"content":"x"},"content":"x","summary":"bob wrote x"`, stored: true, want: `"object":` + own + `,"type":"Create"`},
		{name: "one of the actor's own that is not", activity: `"type":"Offer","object":{"id":` + own + `,"type":"Thing","name":"<b>n</b>","content":"x"}`, want: `"object":{"id":` + own + `,"type":"Thing"},"type":"Offer"`},
		{name: "IDN-04 makers of an activity and of what it brings", activity: `"type":"Offer","attributedTo":"https://q.example/carol","object":{"id":` + own + `,"type":"Thing","attributedTo":["alice"],"actor":"https://p.example/bob","tag":[{"type":"Tag","actor":"alice"}]}`,
			want: `"object":{"actor":"https://p.example/bob","id":` + own + `,"type":"Thing"},"type":"Offer"`},
		{name: "a friendship that the actor asks for", activity: `"type":"Offer","object":{"type":"Relationship","subject":"https://p.example/bob","relationship":"lw:friendOf","object":"https://here.example/alice","name":"<b>n</b>"}`,
			want: `"object":{"object":"https://here.example/alice","relationship":"lw:friendOf","subject":"https://p.example/bob","type":"Relationship"},"type":"Offer"`},
		{name: "a friendship with an id", activity: `"type":"Offer","object":{"id":` + own + `,"type":"Relationship","subject":{"id":"https://p.example/bob"},"relationship":"lw:friendOf","object":"https://here.example/alice"}`,
			want: `"object":{"id":` + own + `,"object":"https://here.example/alice","relationship":"lw:friendOf","subject":"https://p.example/bob","type":"Relationship"},"type":"Offer"`},
		{name: "ids, types and times", activity: `"id":` + own + `,"type":["Move","lw:x"],"object":` + own + `,"target":{"id":` + foreign + `},"origin":` + own + `,"result":` + own + `,"instrument":{"id":` + own + `,"type":"Note"},"to":["as:Public"],"cc":[],"audience":` + foreign + `,"published":"2026-02-21T12:00:00Z","updated":"2026-02-21T12:00:00Z"`,
			want: `"audience":` + foreign + `,"cc":[],"id":` + own + `,"instrument":` + own + `,"object":` + own + `,"origin":` + own + `,"published":"2026-02-21T12:00:00Z","result":` + own + `,"target":` + foreign + `,"to":["as:Public"],"type":["Move","lw:x"],"updated":"2026-02-21T12:00:00Z"`},
		{name: "a report", activity: `"type":"Flag","object":["https://here.example/alice","https://here.example/1"]`, want: `"object":["https://here.example/alice","https://here.example/1"],"type":"Flag"`},
		{name: "an emoji with its picture", activity: `"type":"Like","object":` + own + `,"content":":blob:","tag":[{"type":"Hashtag","name":"#blob"},{"id":` + own + `,"type":"Emoji","name":"blob","updated":"x","icon":{"type":"Image","mediaType":"image/png","url":"https://p.example/x.png"}}]`,
			want: `"content":":blob:","object":` + own + `,"tag":[{"icon":{"mediaType":"image/png","type":"Image","url":"https://p.example/x.png"},"id":` + own + `,"name":"blob","type":"Emoji"}],"type":"Like"`},
		{name: "SEE-03 another's", activity: `"type":"Announce","object":{"id":` + foreign + `,"type":"Note","content":"altered"}`, want: `"object":` + foreign + `,"type":"Announce"`},
		{name: "SEE-03 a neighbour's", activity: `"type":"Like","content":"👍","object":[{"id":` + own + `,"attributedTo":"https://p.example/dan","content":"altered"}]`, want: `"content":"👍","object":[` + own + `],"type":"Like"`},
		{name: "SEE-03 a copy without an id", activity: `"type":"Like","object":{"attributedTo":"https://q.example/carol","content":"altered"}`, want: `"type":"Like"`},
		{name: "SEE-03 copies elsewhere", activity: `"type":"Like","target":{"id":` + foreign + `,"content":"altered"},"instrument":{"actor":"https://q.example/carol","content":"altered"}`, want: `"target":` + foreign + `,"type":"Like"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ShowActivity(parse(t, `{"@context":"x","proof":{},"actor":"https://p.example/bob",`+tt.activity+`}`), tt.stored, strings.Contains(tt.activity, `"Like"`))
			if got := string(got.JSON()); got != `{"actor":"https://p.example/bob",`+tt.want+`}` {
				t.Errorf("ShowActivity =\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestWithOwnAuthors(t *testing.T) {
	const id = `"id":"https://p.example/1"`
	for authors, want := range map[string]string{
		`"https://p.example/bob"`:                                                     `"https://p.example/bob"`,
		`["https://p.example/bob","https://p.example/dan"]`:                           `["https://p.example/bob","https://p.example/dan"]`,
		`["1","https://p.example/bob"]`:                                               `"https://p.example/bob"`,
		`["alice",{"id":"https://p.example/bob"},"https://q.example/carol"]`:          `{"id":"https://p.example/bob"}`,
		`{"id":"","type":"Link","href":"https://p.example/bob"}`:                      `"https://p.example/bob"`,
		`{"id":"","@id":"","type":"Link","href":"https://p.example/bob"}`:             `"https://p.example/bob"`,
		`["https://q.example/carol","https://p.example/dan","https://P.example/bob"]`: `["https://p.example/dan","https://P.example/bob"]`,
	} {
		d := parse(t, `{"attributedTo":`+authors+`,`+id+`}`)
		if got := string(d.WithOwnAuthors().JSON()); got != `{"attributedTo":`+want+`,`+id+`}` {
			t.Errorf("%s becomes %s, want %s", authors, got, want)
		}
	}
	if got := string(parse(t, `{"attributedTo":["1","https://q.example/carol"],`+id+`}`).WithOwnAuthors().JSON()); got != `{`+id+`}` {
		t.Errorf("what nobody proven wrote becomes %s", got)
	}
}

// The database finds authors in these forms: an id, an object with an id, or a list of either. An
// author in another form is stored in one of these forms.
func TestAuthorsAreStoredInFormsThatTheDatabaseFinds(t *testing.T) {
	const dave = `"https://p.example/dave"`
	for by, want := range map[string]string{
		dave:                                   dave,
		`{"id":` + dave + `,"type":"Person"}`:  `{"id":` + dave + `,"type":"Person"}`,
		`{"@id":` + dave + `,"type":"Person"}`: `{"id":` + dave + `,"type":"Person"}`,
		`{"@id":"HTTPS://P.example:443/dave"}`: `{"id":` + dave + `}`,
		`{"type":"Link","href":` + dave + `}`:  dave,
		`["https://p.example/group",{"@id":` + dave + `,"@type":"Person"}]`: `["https://p.example/group",{"@type":"Person","id":` + dave + `}]`,
		`["https://q.example/carol",{"href":` + dave + `}]`:                 dave,
	} {
		o, err := ObjectOf(parse(t, `{"id":"https://p.example/notes/1","type":"Note","attributedTo":`+by+`}`))
		if err != nil {
			t.Fatal(err)
		}
		doc, _ := o.Stored()
		if got := string(doc); got != `{"attributedTo":`+want+`,"id":"https://p.example/notes/1","type":"Note"}` {
			t.Errorf("by %s is stored as %s, want by %s", by, got, want)
		}
	}
}

func parse(t *testing.T, raw string) Doc {
	t.Helper()
	d, err := ParseDoc([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The plain text of a user's own post is the source that the user wrote. That holds even before
// the post is stored.
func TestThePlainTextOfAUsersOwnPost(t *testing.T) {
	t.Parallel()
	d := parse(t, `{"id":"https://p.example/1","type":"Note","content":"<p>hi @bob</p>","source":{"content":"hi @bob@q.example","mediaType":"text/plain"}}`)
	o, err := ObjectOf(d)
	if err != nil {
		t.Fatal(err)
	}
	_, own := o.WrittenHere().Stored()
	_, others := o.Stored()
	for name, c := range map[string]struct{ stored, want string }{
		"own": {string(own), "hi @bob@q.example"}, "not stored yet": {"", "hi @bob@q.example"}, "of another server": {string(others), "hi @bob"},
	} {
		if got := Show(d, ReadableOf(d, []byte(c.stored)), nil).Sub("source").Text("content"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// For every document, Show returns HTML only in content.
func FuzzShow(f *testing.F) {
	addHabits(f)
	f.Add([]byte(`{"content":"<b>x","contentMap":{"en":"<script>"},"tag":[{"name":"<img onerror=x>"}],"a":{"b":["<svg onload=x>"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := ParseDoc(raw)
		if err != nil {
			return
		}
		shown := Show(d, Readable(d, raw), nil)
		checkHarmless(t, string(raw), shown.Text("content"))
		delete(shown, "content")
		delete(shown, "source")
		if _, err := ParseDoc(ShowActivity(d, false, true).JSON()); err != nil {
			t.Error(err)
		}
		if s := string(shown.JSON()); strings.Contains(s, "<script") && !strings.Contains(string(raw), "&") {
			t.Errorf("%s is shown as %s", raw, s)
		}
	})
}

// The search for links is slow in long texts. So plain texts get no links if they are too long in
// all languages together.
func TestPlainTextsHaveNoLinksIfAllLanguagesTogetherAreLong(t *testing.T) {
	t.Parallel()
	text := "https://a.example/ " + strings.Repeat("a ", 20<<10)
	for languages, want := range map[string]bool{"de": true, "de fr": false} {
		all := Doc{}
		for _, tag := range strings.Fields(languages) {
			all[tag] = tag + " " + text
		}
		d := Doc{"type": "Note", "mediaType": "text/plain", "content": "x", "contentMap": all}
		if got := strings.Contains(Readable(d, d.JSON()).Sub("contentMap").Text("de"), `href="https://a.example/"`); got != want {
			t.Errorf("in %q: linked %t, want %t", languages, got, want)
		}
	}
}
