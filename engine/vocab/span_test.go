package vocab

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want string // the links, separated by spaces
	}{
		{"see https://example.org/a?b=c#d.", "https://example.org/a?b=c#d"},
		{"(https://example.org/a_(b)) and [https://example.org]", "https://example.org/a_(b) https://example.org"},
		{"http://example.org, https://bücher.example/ä!", "http://example.org https://bücher.example/ä"},
		{"https:// https://. ftp://example.org javascript:alert(1)", ""},
		{"https://bank.example@evil.example/ and https://a:b@evil.example", ""},
		{`<https://example.org/a"b>`, "https://example.org/a"},
		{"https://example.org/@a@b.example#c", "https://example.org/@a@b.example#c"},
		{"ask @bob@example.org, @c.d-e@127.0.0.1:8080. (@x@ö.example)", "@bob@example.org @c.d-e@127.0.0.1:8080 @x@ö.example"},
		{"bob@example.org a@b@example.org @bob @bob@ @bob@localhost @@bob@example.org", ""},
		{"#go, #Straßen_bahn #2026a #क्या. C#x a#b ##c &#8211; #1 # #_", "#go #Straßen_bahn #2026a #क्या"},
		{"https://example.org/" + strings.Repeat("a", 2028), "https://example.org/" + strings.Repeat("a", 2028)},
		{"https://example.org/" + strings.Repeat("a", 2029), ""},
		{"#" + strings.Repeat("ä", 64), "#" + strings.Repeat("ä", 64)},
		{"#" + strings.Repeat("ä", 65), ""},
	} {
		var got []string
		for _, s := range Spans(tt.text) {
			if tt.text[s.At:s.At+len(s.Text)] != s.Text {
				t.Errorf("%q: the span %q does not stand at %d", tt.text, s.Text, s.At)
			}
			got = append(got, s.Text)
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%q has the spans %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestSpansBecomeLinks(t *testing.T) {
	t.Parallel()
	href := func(s Span) string {
		switch s.Kind {
		case LinkSpan:
			return s.Text
		case HashtagSpan:
			return "https://here.example/tags/" + s.Text[1:]
		}
		if strings.Contains(s.Text, "nobody") {
			return ""
		}
		return `https://p.example/"bob"`
	}
	got := TextToHTML("hi @bob@p.example & @nobody@p.example\nhttps://e.example/?a=b&c='d' #go", href)
	want := `<p>hi <span class="h-card"><a href="https://p.example/&#34;bob&#34;" class="u-url mention">@bob@p.example</a></span> &amp; @nobody@p.example` +
		`<br><a href="https://e.example/?a=b&amp;c=&#39;d" rel="nofollow noreferrer noopener" target="_blank">https://e.example/?a=b&amp;c=&#39;d</a>&#39;` +
		` <a href="https://here.example/tags/go" class="mention hashtag" rel="tag">#go</a></p>`
	if got != want {
		t.Errorf("the text became\n%s, want\n%s", got, want)
	}
}

// If links would make a text longer than other servers accept, the text gets no links.
func TestATextOfTooManyLinksHasNone(t *testing.T) {
	t.Parallel()
	text := strings.TrimSpace(strings.Repeat("#aa ", 64<<10/4))
	got := TextToHTML(text, func(s Span) string { return "https://here.example/tags/" + s.Text[1:] })
	if len(got) > MaxContent || strings.Contains(got, "<a") || HTMLToText(got) != text {
		t.Errorf("it became %d bytes: %.100s", len(got), got)
	}
}

// Every text is the same after it is converted to HTML and read back. The sanitizer keeps its
// links.
func TestLinkedTextComesBackFromHTML(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"https://e.example/a", "@bob@p.example", "#go", " ", "\n", "<b>", "\"", "'", "&", ".", "(", ")", "a", "@", "#", "ä", "https://"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOf(words).Draw(t, "words"), "")
		h := TextToHTML(s, func(s Span) string { return "https://x.example/" + s.Text })
		if got := HTMLToText(h); got != normalized(s) {
			t.Fatalf("%q became %q, want %q", s, got, normalized(s))
		}
		if strings.Count(Sanitize(h), "<a ") != strings.Count(h, "<a ") {
			t.Fatalf("%q lost a link: %s", h, Sanitize(h))
		}
	})
}
