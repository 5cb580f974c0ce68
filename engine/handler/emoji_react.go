package handler

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newEmojiReact returns the handler of EmojiReact: an actor reacts to an object with an emoji
// (FEP-c0e0; Pleroma and Akkoma send it). An actor may react to one object with several emojis,
// once with each. Misskey sends such a reaction as a Like with content.
func newEmojiReact(local *actor.Local) Handler {
	h := newReview(local, vocab.Like) // for all types that can be liked
	h.Check = func(a *vocab.Activity) error {
		if err := checkObject(a); err != nil {
			return err
		}
		if emojiOf(a.Doc) == "" {
			return fault.New(fault.Invalid, "the content must be one emoji, or a :shortcode: with its tag").WithCode("no_emoji").At("/content")
		}
		return nil
	}
	return h
}

// Limits on an emoji, in code points (one emoji may have a dozen), and on a shortcode, in bytes.
const (
	maxEmoji     = 16
	maxShortcode = 64
)

var shortcode = regexp.MustCompile(`^:[A-Za-z0-9_+.@-]+:$`)

// emojiOf returns the emoji of a reaction: a Unicode emoji, or the shortcode of a custom emoji
// that the activity has as a tag. It returns "" if there is none. Older versions of Misskey send
// the emoji only in the member _misskey_reaction.
func emojiOf(d vocab.Doc) string {
	for _, name := range []string{"content", "_misskey_reaction"} {
		switch said := d.Text(name); {
		case isUnicodeEmoji(said), len(said) <= maxShortcode && shortcode.MatchString(said) && emojiTag(d, said) != nil:
			return said
		case said != "":
			return ""
		}
	}
	return ""
}

// isUnicodeEmoji reports whether a text may be one emoji: it is short and visible, and has no
// letters, no spaces, no control characters, no marks that change the text direction, and none of
// the characters of shortcodes and HTML (:<>&"'). There is no list of emojis here, because new
// ones are added every year. Of all emojis only ℹ is a letter to Unicode.
func isUnicodeEmoji(s string) bool {
	none := func(r rune) bool {
		return unicode.IsLetter(r) && r != 'ℹ' || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(":<>&\"'", r)
	}
	return s != "" && utf8.RuneCountInString(s) <= maxEmoji && strings.IndexFunc(s, none) < 0 && strings.IndexFunc(s, isSymbol) >= 0
}

// isSymbol reports whether a character is visible and not plain text. A keycap emoji is a digit
// followed by such a character.
func isSymbol(r rune) bool {
	return r > unicode.MaxLatin1 && !unicode.In(r, unicode.Cf, unicode.Mn) || r == '©' || r == '®'
}

// emojiTag returns the document's tag for the custom emoji with that shortcode, or nil if there
// is none.
func emojiTag(d vocab.Doc, code string) vocab.Doc {
	for _, tag := range d.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Emoji" && strings.Trim(tag.Text("name"), ":") == strings.Trim(code, ":") {
			return tag
		}
	}
	return nil
}
