package handler

import (
	"context"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newEmojiReact returns the handler of EmojiReact: an actor reacts to an object with an emoji
// (FEP-c0e0; Pleroma and Akkoma send it). It has one reaction with each emoji. Misskey sends the
// same as a Like with content.
func newEmojiReact(local *actor.Local) Handler {
	h := newReview(local, vocab.Like) // on whatever can be liked
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

// Bounds of an emoji, in characters: one may be made of a dozen code points.
const (
	maxEmoji     = 16
	maxShortcode = 64
)

var shortcode = regexp.MustCompile(`^:[A-Za-z0-9_+.@-]+:$`)

// emojiOf returns the emoji of a reaction, empty when it has none: a Unicode emoji, or the
// shortcode of one that the activity describes in its tags. Older Misskey says it in a member of
// its own alone.
func emojiOf(d vocab.Doc) string {
	for _, name := range []string{"content", "_misskey_reaction"} {
		switch said := d.Text(name); {
		case isUnicodeEmoji(said), len(said) <= maxShortcode && shortcode.MatchString(said) && hasEmojiTag(d, said):
			return said
		case said != "":
			return ""
		}
	}
	return ""
}

// isUnicodeEmoji reports whether a text may be one emoji: it is short, and has neither letters nor
// space. Which emojis there are changes every year.
func isUnicodeEmoji(s string) bool {
	none := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(":<>&\"'", r)
	}
	return s != "" && utf8.RuneCountInString(s) <= maxEmoji && strings.IndexFunc(s, none) < 0 && strings.IndexFunc(s, isSymbol) >= 0
}

// isSymbol reports whether a character is no plain text. Keycaps are digits with one that is not.
func isSymbol(r rune) bool { return r > unicode.MaxLatin1 || r == '©' || r == '®' }

// hasEmojiTag reports whether a tag of the document is the custom emoji of that shortcode.
func hasEmojiTag(d vocab.Doc, code string) bool {
	for _, tag := range d.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Emoji" && strings.Trim(tag.Text("name"), ":") == strings.Trim(code, ":") {
			return true
		}
	}
	return false
}

// reactionOf returns what a Like, Dislike or EmojiReact thinks of an object.
func reactionOf(a *vocab.Activity, object, actor vocab.ID) db.Reaction {
	r := db.Reaction{Object: object, Actor: actor, Kind: db.Review, Type: a.Type, Activity: a.ID}
	if emoji := emojiOf(a.Doc); emoji != "" && a.Type != vocab.Dislike {
		r.Kind, r.Emoji = db.Emoji, emoji
	}
	return r
}

// undoReview takes back a Like, Dislike or EmojiReact: by the id of its activity, or, when that
// never arrived, by what it is about and its emoji.
func undoReview(ctx context.Context, tx Tx, r *Received, d doing) (bool, error) {
	kind, emoji := db.Review, emojiOf(r.Activity.Object.Doc)
	if emoji != "" && d.kind != vocab.Dislike {
		kind = db.Emoji
	}
	return undoReaction(ctx, tx, r, d, kind, emoji)
}
