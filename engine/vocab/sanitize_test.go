package vocab

import (
	"strings"
	"testing"

	nethtml "golang.org/x/net/html"
)

const rel = ` rel="nofollow noreferrer noopener" target="_blank"`

func TestSanitize(t *testing.T) {
	for _, tt := range []struct{ name, html, want string }{
		{"empty", "", ""},
		{"no markup", "a & b > c", "a & b > c"},
		{"what most posts are stays as it is", `<p>"a" &amp; b<br>c<br />d</p><p>e</p>`, `<p>"a" &amp; b<br>c<br />d</p><p>e</p>`},
		{"a mention as Mastodon writes it", `<p><span class="h-card" translate="no"><a href="https://m.example/@bob" class="u-url mention">@<span>bob</span></a></span> hi</p>`,
			`<p><span class="h-card"><a href="https://m.example/@bob" class="u-url mention"` + rel + `>@<span>bob</span></a></span> hi</p>`},
		{"a link as Mastodon writes it", `<a href="https://a.example/x" target="_blank" rel="me tag"><span class="invisible">https://</span><span class="ellipsis">a.example</span></a>`,
			`<a href="https://a.example/x"` + rel + `><span class="invisible">https://</span><span class="ellipsis">a.example</span></a>`},
		{"classes that are not known", `<a href="https://a.example/" class="mention status-link admin">a</a><span class="btn">b</span>`,
			`<a href="https://a.example/" class="mention"` + rel + `>a</a><span>b</span>`},
		{"the elements of text", "<h1>a</h1><ul><li><strong>b</strong></li></ul><pre><code>c</code></pre><blockquote><em>d</em><del>e</del></blockquote>",
			"<h1>a</h1><ul><li><strong>b</strong></li></ul><pre><code>c</code></pre><blockquote><em>d</em><del>e</del></blockquote>"},
		{"other elements leave their words", "<div>a<font>b</font></div><table><tr><td>c</td></tr></table>", "abc"},
		{"mail", `<a href="mailto:a@b.example">a</a>`, `<a href="mailto:a@b.example" rel="nofollow noreferrer">a</a>`},
		{"PAR-09 script", "a<script>alert(1)</script><SCRIPT>x</ScRipt >b", "ab"},
		{"PAR-09 style", `a<style>p{}</style><p style="x" onclick="y" id="z">b</p>`, "a<p>b</p>"},
		{"PAR-09 links that run", `<a href="javascript:alert(1)">a</a><a href=" jAva&#x0A;script:x">b</a><a href="data:text/html,x">c</a><a href="//x.example">d</a><a href="/settings">e</a>`, "abcde"},
		{"PAR-09 pictures", `<img src=x onerror=alert(1)>a<svg onload=alert(1)><path/></svg>b`, "ab"},
		{"PAR-09 mutation", `<noscript><p title="</noscript><img src=x onerror=alert(1)>">a`, "&#34;&gt;a"},
		{"PAR-09b malformed math", `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">a`, "a"},
		{"forms", `<form action="https://x.example"><input name=a><button>b</button></form>`, "b"},
		{"ends of what was not begun", "</p></div></blockquote>a</b>", "a"},
		{"elements that are not closed", "<p><b>a<blockquote>b", "<p><b>a<blockquote>b</blockquote></b></p>"},
		{"elements closed across each other", "<b><i>a</b>b</i>", "<b><i>a</i></b>b"},
		{"a comment", "a<!-- <b>x --><!doctype x>b", "ab"},
		{"a lone angle", "1 < 2 <b>c</b>", "1 &lt; 2 <b>c</b>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Sanitize(tt.html); got != tt.want {
				t.Errorf("Sanitize(%q) =\n%s\nwant\n%s", tt.html, got, tt.want)
			}
		})
	}
}

func TestSanitizedElementsAreNotNestedDeep(t *testing.T) {
	got := Sanitize(strings.Repeat("<blockquote>", 500) + "a" + strings.Repeat("</blockquote>", 500))
	if n := strings.Count(got, "<blockquote>"); n != maxNesting || strings.Count(got, "</blockquote>") != n || !strings.Contains(got, "a") {
		t.Errorf("%d elements are open at once, want %d: %.200s", n, maxNesting, got)
	}
}

// Each text has the maximal length. An algorithm with quadratic time would need minutes.
func TestSanitizeIsLinear(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			checkHarmless(t, bomb, Sanitize(bomb))
			if got := PlainText(bomb); len(got) > len(bomb) {
				t.Errorf("%d bytes became %d", len(bomb), len(got))
			}
		})
	}
}

func TestPlainText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no markup", "a & b", "a & b"},
		{"angles that are no markup", "Vec<T> is 1 < 2 > 0, <3", "Vec<T> is 1 < 2 > 0, <3"},
		{"references without markup are words", "&lt;b&gt; and &amp;", "&lt;b&gt; and &amp;"},
		{"elements", "<b>a</b> &amp; <i>b</i>", "a & b"},
		{"PAR-09 a picture", `a<img src=x onerror=alert(1)>`, "a"},
		{"PAR-09 an element nobody knows", `a<x onmouseover=alert(1)>b</x>`, "ab"},
		{"PAR-09 script", "a<script>alert(1)</script>", "a"},
		{"PAR-09 a comment", "a<!--x-->", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := PlainText(tt.text); got != tt.want {
				t.Errorf("PlainText(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

// checkHarmless fails the test if HTML has elements or attributes that a page may not contain, or
// elements that are not closed.
func checkHarmless(t *testing.T, from, clean string) {
	t.Helper()
	depth := 0
	for z := nethtml.NewTokenizer(strings.NewReader(clean)); ; {
		switch z.Next() {
		case nethtml.ErrorToken:
			if depth != 0 {
				t.Errorf("%.200q became %.200q, with %d elements open", from, clean, depth)
			}
			return
		case nethtml.CommentToken, nethtml.DoctypeToken:
			t.Errorf("%.200q became %.200q, with a comment", from, clean)
		case nethtml.StartTagToken:
			token := z.Token()
			if !void[token.Data] {
				depth++
			}
			if depth > maxNesting || !void[token.Data] && token.Data != "a" && token.Data != "span" && harmless.Sanitize("<"+token.Data+">") == "" {
				t.Errorf("%.200q became %.200q, with %s", from, clean, token)
			}
			for _, a := range token.Attr {
				href := a.Key == "href" && (strings.HasPrefix(a.Val, "http://") || strings.HasPrefix(a.Val, "https://") || strings.HasPrefix(a.Val, "mailto:"))
				if !href && a.Key != "rel" && a.Key != "target" && a.Key != "class" && a.Key != "lang" && a.Key != "dir" && a.Key != "start" && a.Key != "value" {
					t.Errorf("%.200q became %.200q, with %s=%s", from, clean, a.Key, a.Val)
				}
			}
		case nethtml.EndTagToken:
			depth--
		}
	}
}

func FuzzSanitize(f *testing.F) {
	for _, s := range []string{"<p>a</p>", "<a href='https://a.example'>a</a>", "<b><i>a</b>", "<math><mi><svg><desc><p></math>", "<p", "</", "<!-", "&#x110000;",
		"<svg></p><style><g title=\"</style>\">", "<noscript><p title=\"</noscript><img src=x>\">", "<a href=\"java\tscript:x\">"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := Sanitize(s)
		checkHarmless(t, s, clean)
		if again := Sanitize(clean); len(s) < maxText/8 && HTMLToText(again) != HTMLToText(clean) {
			t.Errorf("%q became %q, and that %q", s, clean, again)
		}
		PlainText(s)
	})
}
