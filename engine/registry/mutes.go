package registry

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/vocab"
)

// mutes is a Moderation in a form for fast lookups. It is made once, when the file is read.
type mutes struct {
	actors   map[vocab.ID]bool
	domains  map[string]bool
	keywords []string // as foldText returns them
}

func (m Moderation) compileMutes() *mutes {
	if len(m.MutedActors)+len(m.MutedDomains)+len(m.MutedKeywords) == 0 {
		return nil
	}
	c := &mutes{actors: map[vocab.ID]bool{}, domains: map[string]bool{}}
	for _, a := range m.MutedActors {
		c.actors[a.Canonical()] = true
	}
	for _, d := range m.MutedDomains {
		host, _ := readMuted(d) // validateMutes has checked it
		c.domains[host] = true
	}
	for _, k := range m.MutedKeywords {
		c.keywords = append(c.keywords, strings.TrimPrefix(foldText(k), "#"))
	}
	return c
}

// HasKeywords reports whether any keywords are muted.
func (m Moderation) HasKeywords() bool { return m.compiled != nil && len(m.compiled.keywords) > 0 }

// HidesActor reports whether an actor, the actor's domain or a parent of that domain is muted.
func (m Moderation) HidesActor(id vocab.ID) bool {
	if m.compiled == nil {
		return false
	}
	if m.compiled.actors[id.Canonical()] {
		return true
	}
	host, _, _ := strings.Cut(id.Canonical().Host(), ":")
	for ; host != ""; _, host, _ = strings.Cut(host, ".") {
		if m.compiled.domains[host] {
			return true
		}
	}
	return false
}

// HidesAny reports whether any of the voices, the actors that wrote or sent something, is muted.
// The user never counts as muted. The parameter me is the id of the user's actor.
func (m Moderation) HidesAny(voices []vocab.ID, me vocab.ID) bool {
	return slices.ContainsFunc(voices, func(id vocab.ID) bool { return !id.Same(me) && m.HidesActor(id) })
}

// HidesWords reports whether a text in an object contains a muted keyword.
func (m Moderation) HidesWords(d vocab.Doc) bool {
	return m.HasKeywords() && slices.ContainsFunc(vocab.WordsOf(d), m.HidesText)
}

// HidesText reports whether a text contains a muted keyword as a whole word, in upper or lower
// case.
func (m Moderation) HidesText(text string) bool {
	if !m.HasKeywords() {
		return false
	}
	text = foldText(text)
	return slices.ContainsFunc(m.compiled.keywords, func(k string) bool { return hasWord(text, k) })
}

// foldText returns a text in lower case, with one space between words.
func foldText(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// hasWord reports whether a word is in a text and is not a part of a longer word there.
func hasWord(text, word string) bool {
	first, size := utf8.DecodeRuneInString(word)
	last, _ := utf8.DecodeLastRuneInString(word)
	for from := 0; ; from += size {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		from += at
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		after, _ := utf8.DecodeRuneInString(text[from+len(word):])
		if !joinsWord(before, first) && !joinsWord(last, after) {
			return true
		}
	}
}

// joinsWord reports whether two neighbouring characters belong to one word. The result is false
// for scripts without spaces between words, because nothing there tells where a word ends.
func joinsWord(a, b rune) bool {
	return isWordRune(a) && isWordRune(b) && !unicode.In(a, unspaced...) && !unicode.In(b, unspaced...)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_')
}

// unspaced lists the scripts without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}
