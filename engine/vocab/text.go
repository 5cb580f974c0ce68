package vocab

import (
	"strings"

	nethtml "golang.org/x/net/html"
)

// maxText is the greatest number of bytes of a text, HTML or plain, that are read.
const maxText = 512 << 10

// space are the white space characters of HTML (HTML Living Standard §2.3.2, "ASCII whitespace").
const space = " \t\n\f\r"

func isSpace(r rune) bool { return strings.ContainsRune(space, r) }

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// TextToHTML returns plain text as the HTML that other servers expect in the member content. The
// text is escaped, a block of lines becomes a paragraph, and spans for which href has an address
// become links. If the result would exceed MaxContent, which servers may refuse, it has no links.
func TextToHTML(text string, href Href) string {
	if s := textToHTML(text, href); len(s) <= MaxContent {
		return s
	}
	return textToHTML(text, nil)
}

func textToHTML(text string, href Href) string {
	var b strings.Builder
	open := false
	for line := range strings.SplitSeq(newlines.Replace(text), "\n") {
		line = strings.Trim(line, space)
		switch {
		case line == "" && open:
			b.WriteString("</p>")
			open = false
		case line == "":
		case open:
			b.WriteString("<br>")
			appendLine(&b, line, href)
		default:
			b.WriteString("<p>")
			appendLine(&b, line, href)
			open = true
		}
	}
	if open {
		b.WriteString("</p>")
	}
	return b.String()
}

// breaks are the elements that begin on a new line, with the number of line ends before and
// after them.
var breaks = map[string]int{"p": 2, "blockquote": 2, "pre": 2, "h1": 2, "h2": 2, "h3": 2, "h4": 2, "h5": 2, "h6": 2,
	"ul": 2, "ol": 2, "dl": 2, "table": 2, "hr": 2, "figure": 2, "section": 2, "article": 2,
	"div": 1, "li": 1, "tr": 1, "dt": 1, "dd": 1, "figcaption": 1, "details": 1, "summary": 1}

// hidden are the elements whose text readers do not see. The tokenizer reads markup inside them as
// text, so they do not nest.
var hidden = map[string]bool{"script": true, "style": true, "title": true, "iframe": true, "noembed": true, "noframes": true}

// HTMLToText returns the text that a reader of the HTML sees, without scripts and styles. It
// takes linear time.
func HTMLToText(s string) string {
	z := nethtml.NewTokenizer(strings.NewReader(cutText(s)))
	var w words
	within := "" // the hidden element around the current token; empty for none
	for {
		kind := z.Next()
		switch kind {
		case nethtml.ErrorToken: // the end: reading a string cannot fail otherwise
			return w.String()
		case nethtml.TextToken:
			if within == "" {
				w.text(string(z.Text()))
			}
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken, nethtml.EndTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			switch {
			case within != "":
				if kind == nethtml.EndTagToken && name == within {
					within = ""
				}
			case hidden[name] && kind != nethtml.EndTagToken:
				within = name
			default:
				w.tag(name, kind)
			}
		}
	}
}

// words collects text with the layout of a browser. It reduces white space to one space, and
// puts at most one empty line between two blocks.
type words struct {
	strings.Builder
	ends  int  // how many line ends to write before the next word
	space bool // write a space before the next word, unless ends is above 0
	pre   int  // the number of open pre elements, in which white space is preserved
}

func (w *words) tag(name string, kind nethtml.TokenType) {
	switch name {
	case "br":
		w.ends = min(w.ends+1, 2)
	case "td", "th":
		w.space = true
	case "pre":
		if kind == nethtml.EndTagToken {
			w.pre = max(w.pre-1, 0)
		} else {
			w.pre++
		}
	}
	w.ends = max(w.ends, breaks[name])
}

func (w *words) text(s string) {
	if w.pre > 0 {
		for i, line := range strings.Split(s, "\n") {
			if i > 0 {
				w.ends = min(w.ends+1, 2)
			}
			w.add(line)
		}
		return
	}
	for i, word := range strings.FieldsFunc(s, isSpace) {
		w.space = w.space || i > 0 || isSpace(rune(s[0]))
		w.add(word)
	}
	w.space = w.space || s != "" && isSpace(rune(s[len(s)-1]))
}

func (w *words) add(s string) {
	if s == "" {
		return
	}
	switch {
	case w.Len() == 0:
	case w.ends > 0:
		w.WriteString("\n\n"[:w.ends])
	case w.space:
		w.WriteByte(' ')
	}
	w.ends, w.space = 0, false
	w.WriteString(s)
}
