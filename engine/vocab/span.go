package vocab

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Span is a part of a plain text that may become a link.
type Span struct {
	Kind SpanKind
	At   int    // the offset of its first byte
	Text string // as it is written
}

// SpanKind is the kind of a span.
type SpanKind int

// The kinds of spans.
const (
	LinkSpan    SpanKind = iota // an address, https://host/path
	HandleSpan                  // an actor, @user@host
	HashtagSpan                 // #tag
)

// Bounds of spans. Longer ones are not recognized as spans.
const (
	maxLink    = 2 << 10 // bytes
	maxHashtag = 64      // characters
)

var spanForm = regexp.MustCompile(`(https?://[^\s\p{Z}\p{C}<>"]+)` +
	`|(@[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9_])?@[\pL\pN](?:[\pL\pM\pN.-]{0,251}[\pL\pM\pN])?(?::[0-9]{1,5})?)` +
	`|(#[\pL\pM\pN_]+)`)

// Spans returns the addresses, handles and hashtags in a text, in order. They do not overlap.
func Spans(text string) (spans []Span) {
	for _, m := range spanForm.FindAllStringSubmatchIndex(text, -1) {
		if isInsideWord(text, m[0]) {
			continue
		}
		for kind := LinkSpan; kind <= HashtagSpan; kind++ {
			if at := m[2+2*kind]; at >= 0 {
				if s := trimSpan(kind, text[at:m[3+2*kind]]); s != "" {
					spans = append(spans, Span{kind, at, s})
				}
			}
		}
	}
	return spans
}

// isInsideWord reports whether the text at this offset continues the text before it, as in a#b,
// //host/@a@b and &#8211.
func isInsideWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return at > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || strings.ContainsRune("_/@#&.-", before))
}

// trimSpan returns the part of s that is a span of this kind, or an empty text if there is none.
func trimSpan(kind SpanKind, s string) string {
	switch kind {
	case LinkSpan:
		if len(s) > maxLink {
			return ""
		}
		s = trimSentence(s)
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.User != nil { // https://bank.example@evil.example/ misleads
			return ""
		}
	case HandleSpan:
		if _, host, _ := strings.Cut(s[1:], "@"); !strings.Contains(host, ".") {
			return ""
		}
	case HashtagSpan:
		isWord := strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) })
		if !isWord || utf8.RuneCountInString(s) > maxHashtag+1 {
			return ""
		}
	}
	return s
}

// trimSentence removes punctuation from the end of an address, because it belongs to the sentence
// around the address. It also removes from the end a closing parenthesis or bracket that was not
// opened in the address.
func trimSentence(s string) string {
	for {
		last, size := utf8.DecodeLastRuneInString(s)
		switch {
		case strings.ContainsRune(".,;:!?'*…»”’", last):
		case last == ')' && strings.Count(s, ")") > strings.Count(s, "("):
		case last == ']' && strings.Count(s, "]") > strings.Count(s, "["):
		default:
			return s
		}
		s = s[:len(s)-size]
	}
}

// Href returns the address to which a span links. If it returns "", the span stays text. With a
// nil Href a text has no links, and no time is spent on spans.
type Href func(Span) string

// appendLine writes one line of a text as HTML, with its spans as links.
func appendLine(b *strings.Builder, line string, href Href) {
	done := 0
	for _, s := range spansFor(line, href) {
		to := href(s)
		if to == "" {
			continue
		}
		b.WriteString(html.EscapeString(line[done:s.At]))
		b.WriteString(s.html(to))
		done = s.At + len(s.Text)
	}
	b.WriteString(html.EscapeString(line[done:]))
}

func spansFor(line string, href Href) []Span {
	if href == nil {
		return nil
	}
	return Spans(line)
}

// html returns a span as a link in the form that other servers use. These servers recognize
// mentions and hashtags by their classes.
func (s Span) html(to string) string {
	to, words := html.EscapeString(to), html.EscapeString(s.Text)
	switch s.Kind {
	case HandleSpan:
		return `<span class="h-card"><a href="` + to + `" class="u-url mention">` + words + `</a></span>`
	case HashtagSpan:
		return `<a href="` + to + `" class="mention hashtag" rel="tag">` + words + `</a>`
	default:
		return `<a href="` + to + `" rel="nofollow noreferrer noopener" target="_blank">` + words + `</a>`
	}
}
