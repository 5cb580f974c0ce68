package vocab

import (
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNesting is the greatest depth of nested elements in sanitized HTML. There is a limit because
// browsers take longer for deeper nesting.
const maxNesting = 32

// harmless is the policy for HTML in posts of other servers. It allows the HTML that Mastodon
// writes, and the HTML that editors for articles write.
var harmless = newHarmless()

func newHarmless() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "span", "strong", "em", "b", "i", "u", "s", "del", "ins", "sub", "sup", "small", "code", "pre", "blockquote", "q",
		"ul", "ol", "li", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ruby", "rt", "rp")
	p.AllowAttrs("href").Matching(webLink).OnElements("a")
	p.AllowAttrs("class").OnElements("a", "span", "p")
	p.AllowAttrs("start", "value").Matching(regexp.MustCompile(`^-?[0-9]{1,9}$`)).OnElements("ol", "li")
	p.AllowAttrs("lang").Matching(languageTag).OnElements("p", "span", "blockquote", "a")
	p.AllowAttrs("dir").Matching(regexp.MustCompile(`^(ltr|rtl|auto)$`)).OnElements("p", "span", "blockquote")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true) // this adds noopener, too
	return p
}

// webLink matches an absolute link to the web, and a mailto link.
var webLink = regexp.MustCompile(`(?i)^(https?://[^/?#]|mailto:.)`)

// classes are the classes that posts use to mark mentions, hashtags and the parts of a link.
// classPrefixes matches the classes of microformats.
var (
	classes       = []string{"mention", "hashtag", "invisible", "ellipsis", "quote-inline"}
	classPrefixes = regexp.MustCompile(`^(h|p|u|dt|e)-[a-z-]{1,30}$`)
)

// Sanitize returns HTML of other servers in a form that is safe in a page. The result has only
// elements for text, no scripts or styles, and only links to the web and to mail. Every element
// is closed, and none is nested deeper than 32. Sanitize takes linear time. If the sanitizer
// fails, the result is empty.
func Sanitize(s string) (clean string) {
	if isSimple(s) {
		return s
	}
	defer func() {
		if recover() != nil { // CVE-2026-50129: one post must not make the whole feed fail
			clean = ""
		}
	}()
	return closeElements(harmless.Sanitize(cutText(s)))
}

// cutText returns the first maxText bytes of a text, cut between characters. The rest is not
// read.
func cutText(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "") }

// isSimple reports whether HTML has no elements except line breaks and closed, unnested
// paragraphs. Most posts are like that, and need no sanitizing.
func isSimple(s string) bool {
	if len(s) > maxText {
		return false
	}
	for open := false; ; {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return !open
		}
		s = s[i:]
		end := strings.IndexByte(s, '>') + 1
		switch s[:end] {
		case "<br>", "<br/>", "<br />":
		case "<p>":
			if open {
				return false
			}
			open = true
		case "</p>":
			if !open {
				return false
			}
			open = false
		default:
			return false
		}
		s = s[end:]
	}
}

// void are the allowed elements that have no end tag.
var void = map[string]bool{"br": true, "hr": true}

// closeElements completes sanitized HTML, so that it does not affect the page around it. It
// closes open elements, and leaves out end tags without a start tag, elements that are nested
// too deep, and unknown classes. The sanitizer may have changed links, so closeElements also
// removes links that webLink does not match.
func closeElements(s string) string {
	var b strings.Builder
	var open []string
	z := nethtml.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case nethtml.ErrorToken: // the end
			for _, name := range slices.Backward(open) {
				b.WriteString("</" + name + ">")
			}
			return b.String()
		case nethtml.TextToken:
			b.Write(z.Raw())
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken:
			t := z.Token()
			switch {
			case void[t.Data]:
				t.Type = nethtml.StartTagToken
				b.WriteString(t.String())
			case len(open) < maxNesting:
				open = append(open, t.Data)
				t.Type = nethtml.StartTagToken
				t.Attr = keepAttributes(t.Attr)
				b.WriteString(t.String())
			}
		case nethtml.EndTagToken:
			name, _ := z.TagName()
			begun := lastIndex(open, string(name))
			for begun >= 0 && len(open) > begun {
				b.WriteString("</" + open[len(open)-1] + ">")
				open = open[:len(open)-1]
			}
		}
	}
}

func lastIndex(open []string, name string) int {
	for i, o := range slices.Backward(open) {
		if o == name {
			return i
		}
	}
	return -1
}

func keepAttributes(attrs []nethtml.Attribute) []nethtml.Attribute {
	kept := attrs[:0]
	for _, a := range attrs {
		if a.Key == "class" {
			a.Val = keepClasses(a.Val)
		}
		if a.Key == "class" && a.Val == "" || a.Key == "href" && !webLink.MatchString(a.Val) {
			continue
		}
		kept = append(kept, a)
	}
	return kept
}

func keepClasses(value string) string {
	unknown := func(c string) bool { return !slices.Contains(classes, c) && !classPrefixes.MatchString(c) }
	return strings.Join(slices.DeleteFunc(strings.Fields(value), unknown), " ")
}

// PlainText returns a text without its HTML, for properties that should have no HTML. It returns a
// text without HTML unchanged, and for HTML the text that a reader sees. Angle brackets that are
// not markup, as in Vec<T>, stay.
func PlainText(s string) (text string) {
	if !strings.ContainsRune(s, '<') || !hasMarkup(s) {
		return s
	}
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	return HTMLToText(s)
}

// hasMarkup reports whether a text has an HTML element, a comment, or an unknown tag with
// attributes. It also returns true for a text that is longer than maxText.
func hasMarkup(s string) bool {
	z := nethtml.NewTokenizer(strings.NewReader(cutText(s)))
	for {
		switch z.Next() {
		case nethtml.ErrorToken:
			return len(s) > maxText
		case nethtml.CommentToken, nethtml.DoctypeToken:
			return true
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken, nethtml.EndTagToken:
			name, attributes := z.TagName()
			if attributes || atom.Lookup(name) != 0 {
				return true
			}
		}
	}
}
