package search

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Limits on the words of one object.
const (
	maxWords = 8 << 10
	maxWord  = 64 // bytes; a longer word is cut
)

// splitWords returns the words of a text, in lower case: runs of letters, marks and digits. Each
// Han, Hiragana, Katakana or Thai character is a word, because these scripts put no spaces between
// words. PostgreSQL cannot do this, because the databases sort by bytes, and know only the letters
// of ASCII.
func splitWords(text string) (words []string) {
	begin := -1
	end := func(at int) {
		if begin >= 0 {
			words = append(words, cutWord(text[begin:at]))
		}
		begin = -1
	}
	text = strings.ToLower(text)
	for at, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			end(at)
			words = append(words, string(r))
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r):
			if begin < 0 {
				begin = at
			}
		default:
			end(at)
		}
		if len(words) >= maxWords {
			return words
		}
	}
	end(len(text))
	return words
}

func cutWord(word string) string {
	return strings.ToValidUTF8(word[:min(len(word), maxWord)], "")
}

// writeVector writes words with their positions as a tsvector. No character in the words needs
// an escape.
func writeVector(words []string) string {
	var b strings.Builder
	for n, w := range words {
		b.WriteString("'" + w + "':" + strconv.Itoa(n+1) + " ")
	}
	return b.String()
}

// objectText returns the name, the summary and the content of an object, in every language. It
// returns no text for an encrypted object.
func objectText(d, readable vocab.Doc) string {
	if d.Sealed() != "" {
		return ""
	}
	shown := vocab.Show(d, readable, nil)
	parts := []string{shown.Text("name"), shown.Text("summary"), shown.Sub("source").Text("content")}
	for _, name := range []string{"nameMap", "summaryMap"} {
		for tag, translated := range readable.Sub(name) {
			if text, is := translated.(string); is && tag != "" {
				parts = append(parts, text)
			}
		}
	}
	for _, translated := range readable.Sub("contentMap") {
		if html, is := translated.(string); is {
			parts = append(parts, vocab.HTMLToText(html))
		}
	}
	return strings.Join(parts, "\n")
}
