package vocab

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTextToHTML(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"white space", " \n\t\r\n ", ""},
		{"a line", "hello", "<p>hello</p>"},
		{"two lines", "a\nb", "<p>a<br>b</p>"},
		{"two paragraphs", "a\n\nb", "<p>a</p><p>b</p>"},
		{"many empty lines, some with spaces", "a\n\n \n\t\n\nb\n\n", "<p>a</p><p>b</p>"},
		{"line ends of other systems", "a\r\nb\rc\r\n\r\nd", "<p>a<br>b<br>c</p><p>d</p>"},
		{"markup is words", `<script>alert("x")</script> & 'y'`, "<p>&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt; &amp; &#39;y&#39;</p>"},
		{"entities are words", "&amp; &lt;", "<p>&amp;amp; &amp;lt;</p>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := TextToHTML(tt.text, func(Span) string { return "" }); got != tt.want {
				t.Errorf("TextToHTML(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestHTMLToText(t *testing.T) {
	tests := []struct{ name, html, want string }{
		{"empty", "", ""},
		{"no markup", "hello", "hello"},
		{"paragraphs", "<p>a</p><p>b</p>", "a\n\nb"},
		{"paragraphs set apart in the source", "<p>a</p>\n\n  <p>b</p>\n", "a\n\nb"},
		{"paragraphs never closed", "<p>a<p>b", "a\n\nb"},
		{"breaks", "a<br>b<br/>c<BR />d", "a\nb\nc\nd"},
		{"no more than one empty line", "<p>a<br><br><br></p><br><div><p>b</p></div>", "a\n\nb"},
		{"a block after words", "a<div>b</div>c<blockquote>d</blockquote>e", "a\nb\nc\n\nd\n\ne"},
		{"a list", "to do:<ul><li>a</li><li>b</li></ul>", "to do:\n\na\nb"},
		{"a table", "<table><tr><td>a</td><td>b</td></tr><tr><th>c</th></tr></table>", "a b\nc"},
		{"words across inline elements", "<b>bu</b>zz <i>bu</i>\n<i>zz</i>", "buzz bu zz"},
		{"white space in the source", "a \n\t b", "a b"},
		{"a space that does not break stays", "a&nbsp; b", "a\u00a0 b"},
		{"white space counts in pre", "<pre><code>if a {\n\tb\n}\n</code></pre>c", "if a {\n\tb\n}\n\nc"},
		{"entities", "&lt;b&gt; &amp;amp; &#x1F41D; &eacute;", "<b> &amp; 🐝 é"},
		{"entities of no character", "&#0;&#xD800;&#x110000;", "\ufffd\ufffd\ufffd"},
		{"a link shows its words", `<a href="javascript:alert(1)" onclick="x()">words</a>`, "words"},
		{"a mention", `<span class="h-card"><a href="https://p/@c">@<span>c</span></a></span> hi`, "@c hi"},
		{"a comment", "a<!-- b --><!doctype x><![CDATA[ c ]]>d", "ad"},
		{"PAR-09 script", "a<script>alert('<p>b</p>')</script>c", "ac"},
		{"PAR-09 script in capitals", "a<SCRIPT type=x>b</ScRiPt >c", "ac"},
		{"PAR-09 script that says it is closed", "a<script/>b</script>c", "ac"},
		{"PAR-09 script never closed", "a<script>b", "a"},
		{"PAR-09 script within a style", "a<style><script></style>b</script>c", "abc"},
		{"PAR-09 style", "a<style>p{}</style>b", "ab"},
		{"PAR-09 title", "<title>a</title>b", "b"},
		{"PAR-09 iframe", "a<iframe><script>x</script></iframe>b", "ab"},
		{"PAR-09 a closing tag of nothing", "a</script></b></style>b", "ab"},
		{"PAR-09 svg", `<svg onload="alert(1)"><path d="x"/></svg>a`, "a"},
		{"PAR-09b malformed math", "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">a", "a"},
		{"cut within a tag", `a<b class="x`, "a"},
		{"a lone angle", "1 < 2 > 0", "1 < 2 > 0"},
		{"PAR-06 invalid UTF-8", "a\xffb", "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := HTMLToText(tt.html); got != tt.want {
				t.Errorf("HTMLToText(%q) = %q, want %q", tt.html, got, tt.want)
			}
		})
	}
}

// bombs holds texts of the maximal length. A careless reader of HTML needs minutes for them.
var bombs = map[string]string{
	"PAR-09 nested elements":           strings.Repeat("<b>", maxText/3),
	"PAR-09 nested blocks":             strings.Repeat("<div>", maxText/5),
	"PAR-09 100,000 attributes":        "<b " + strings.Repeat("a ", maxText/2-2) + ">",
	"PAR-09 an attribute never closed": `<b a="` + strings.Repeat("&", maxText-6),
	"PAR-09 closing tags":              strings.Repeat("</p>", maxText/4),
	"PAR-09 angles":                    strings.Repeat("<", maxText),
	"PAR-09 comments never closed":     strings.Repeat("<!--", maxText/4),
	"PAR-09 scripts never closed":      strings.Repeat("<script>", maxText/8),
	"PAR-09 pre":                       strings.Repeat("<pre>\n", maxText/6),
	"PAR-09 white space":               strings.Repeat(" \n", maxText/2),
	"PAR-09 entities":                  strings.Repeat("&", maxText),
}

// An algorithm with quadratic time would need minutes for each of these texts.
func TestHTMLToTextIsLinear(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			if got := HTMLToText(bomb); len(got) > len(bomb) {
				t.Errorf("%d bytes became %d", len(bomb), len(got))
			}
		})
	}
}

func TestHTMLToTextReadsSoMuchAndNoMore(t *testing.T) {
	got := HTMLToText(strings.Repeat("a", maxText-1) + "üb")
	if len(got) != maxText-1 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid: %t; want it cut before the ü", len(got), utf8.ValidString(got))
	}
}

// normalized returns a text in the form that TextToHTML keeps: single spaces between words, and
// one empty line between paragraphs.
func normalized(text string) string {
	var paragraphs, lines []string
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	for _, line := range append(strings.Split(text, "\n"), "") {
		if line = strings.Join(strings.FieldsFunc(line, isSpace), " "); line != "" {
			lines = append(lines, line)
		} else if lines != nil {
			paragraphs, lines = append(paragraphs, strings.Join(lines, "\n")), nil
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func TestTextComesBackFromHTML(t *testing.T) {
	letters := []rune(" \n\r\t\f<>&;\"'/!-#aßé\u00a0\u2028🐝\u200d\u202e\x01")
	text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom(letters)),
		rapid.StringMatching(`(<(script|p|br|pre|style|!--)/?>|</(script|p|pre|style)>|&(lt|amp|#60);| |\n|a){0,20}`))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		if got, want := HTMLToText(TextToHTML(s, func(Span) string { return "" })), normalized(s); got != want {
			t.Fatalf("%q became %q, want %q", s, got, want)
		}
	})
}
