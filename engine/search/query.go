package search

import (
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

// maxQuery is the length of the longest search, in characters.
const maxQuery = 200

// parsedQuery is a search after parsing.
type parsedQuery struct {
	words  string   // a tsquery, for the texts of objects
	called []string // texts to find in the handles and names of actors
}

// parseQuery parses a search: words that all must occur, "words in a row", and -words that must
// not occur. The last word may be the beginning of a longer one, unless it is quoted or excluded.
func parseQuery(text string) (q parsedQuery, err error) {
	if n := utf8.RuneCountInString(text); n == 0 || n > maxQuery {
		return q, fault.New(fault.Invalid, "search for 1 to 200 characters").WithCode("bad_query")
	}
	terms := readTerms(text)
	var all []string
	wanted := false
	for n, t := range terms {
		written := t.write(n == len(terms)-1)
		if written == "" {
			continue
		}
		all = append(all, written)
		wanted = wanted || !t.isExcluded
		if !t.isExcluded {
			q.called = append(q.called, strings.ToLower(strings.TrimLeft(t.text, "@#")))
		}
	}
	if !wanted {
		return q, fault.New(fault.Invalid, "there is no word to search for").WithCode("bad_query")
	}
	q.words = strings.Join(all, " & ")
	return q, nil
}

// term is a part of a search.
type term struct {
	text                 string
	isQuoted, isExcluded bool
}

// readTerms returns the terms of a search, in order.
func readTerms(text string) (terms []term) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		t := term{}
		if t.isExcluded = text[0] == '-'; t.isExcluded {
			text = text[1:]
		}
		if quoted, is := strings.CutPrefix(text, `"`); is {
			t.isQuoted = true
			t.text, text, _ = strings.Cut(quoted, `"`)
		} else if end := strings.IndexAny(text, " \t\r\n\""); end >= 0 {
			t.text, text = text[:end], text[end:]
		} else {
			t.text, text = text, ""
		}
		terms = append(terms, t)
	}
	return terms
}

// write returns the term as a part of a tsquery, or "" if the term has no word. The words of one
// term must occur in a row.
func (t term) write(isLast bool) string {
	words := splitWords(t.text)
	if len(words) == 0 {
		return ""
	}
	for n, w := range words {
		words[n] = "'" + w + "'"
	}
	if isLast && !t.isQuoted && !t.isExcluded {
		words[len(words)-1] += ":*"
	}
	written := "(" + strings.Join(words, " <-> ") + ")"
	if t.isExcluded {
		return "!" + written
	}
	return written
}
