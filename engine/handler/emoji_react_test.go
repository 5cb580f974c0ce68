package handler_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
)

// Pleroma, Akkoma and Misskey send reactions in these forms.
func TestEmojiReact(t *testing.T) {
	const (
		post    = "us:/alice/objects/1"
		bee     = `"content":"🐝"`
		blob    = `"content":":blobcat:","tag":[{"type":"Emoji","id":"p:/emoji/blobcat","name":":blobcat:","icon":{"type":"Image","url":"p:/blobcat.png"}}]`
		misskey = `"content":"🐝","_misskey_reaction":"🐝"`
	)
	react := func(id, kind, members string) string {
		return `{"id":"p:/reacts/` + id + `","type":"` + kind + `","actor":"p:/carol","object":"` + post + `","to":["us:/alice","p:/carol/followers"],"cc":["as:Public"],` + members + `}`
	}
	sent := func(body string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.MustSend("p:/carol", "us:/alice/inbox", body) }
	}
	undo := func(object string) string {
		return `{"id":"p:/undos/1","type":"Undo","actor":"p:/carol","to":["us:/alice"],"object":` + object + `}`
	}
	reacted := func(kind, emoji string) []string {
		return []string{
			"+ activity inbound " + kind + " p:/reacts/1 " + post,
			"+ reaction p:/carol " + kind + " " + post + " p:/reacts/1 " + emoji,
			"+ event " + strings.ToLower(kind) + ".received p:/reacts/1 " + post + " by stranger p:/carol"}
	}
	public := posted("as:Public")
	undone := []string{
		"- activity inbound EmojiReact p:/reacts/1 " + post,
		"- reaction p:/carol EmojiReact " + post + " p:/reacts/1 🐝",
		"+ activity inbound Undo p:/undos/1 p:/reacts/1",
		"+ event undo.received p:/undos/1 p:/reacts/1 by stranger p:/carol"}
	play(t, []row{
		{name: "with an emoji", given: public, body: react("1", "EmojiReact", bee), want: reacted("EmojiReact", "🐝")},
		{name: "through the shared inbox", given: public, inbox: "us:/inbox", body: react("1", "EmojiReact", bee), want: reacted("EmojiReact", "🐝")},
		{name: "with a family", given: public, body: react("1", "EmojiReact", `"content":"👩🏽‍👩🏽‍👧🏽‍👦🏽"`), want: reacted("EmojiReact", "👩🏽‍👩🏽‍👧🏽‍👦🏽")},
		{name: "with the emoji that is a letter", given: public, body: react("1", "EmojiReact", `"content":"ℹ️"`), want: reacted("EmojiReact", "ℹ️")},
		{name: "with a keycap", given: public, body: react("1", "EmojiReact", `"content":"1️⃣"`), want: reacted("EmojiReact", "1️⃣")},
		{name: "with a custom emoji", given: public, body: react("1", "EmojiReact", blob), want: reacted("EmojiReact", ":blobcat:")},
		{name: "FE-22 Like of Misskey", given: public, body: react("1", "Like", misskey), want: reacted("Like", "🐝")},
		{name: "Like of an older Misskey", given: public, body: react("1", "Like", `"_misskey_reaction":"🐝"`), want: reacted("Like", "🐝")},
		{name: "Like that says something else", given: public, body: react("1", "Like", `"content":"I like it"`), want: []string{
			"+ activity inbound Like p:/reacts/1 " + post, "+ reaction p:/carol Like " + post + " p:/reacts/1", "+ event like.received p:/reacts/1 " + post + " by stranger p:/carol"}},
		{name: "beside a Like", given: both(public, sent(`{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"`+post+`"}`)), body: react("1", "EmojiReact", bee), want: reacted("EmojiReact", "🐝")},
		{name: "beside one with another emoji", given: both(public, sent(react("0", "EmojiReact", blob))), body: react("1", "EmojiReact", bee), want: reacted("EmojiReact", "🐝")},
		{name: "in place of one with the same emoji", given: both(public, sent(react("0", "Like", misskey))), body: react("1", "EmojiReact", bee), want: append(
			[]string{"- reaction p:/carol Like " + post + " p:/reacts/0 🐝"}, reacted("EmojiReact", "🐝")...)},
		{name: "ORG-26 to a post for followers, by somebody else", given: posted("us:/alice/followers"), body: react("1", "EmojiReact", bee)},
		{name: "to what does not exist", body: react("1", "EmojiReact", bee)},
		{name: "undone by its id", given: both(public, sent(react("1", "EmojiReact", bee))), body: undo(`"p:/reacts/1"`), want: undone},
		{name: "undone as a whole", given: both(public, sent(react("1", "EmojiReact", bee))), body: undo(react("1", "EmojiReact", bee)), want: undone},
		{name: "undone under another id", given: both(public, sent(react("1", "EmojiReact", bee))), body: undo(react("7", "EmojiReact", bee)), want: []string{
			undone[0], undone[1], "+ activity inbound Undo p:/undos/1 p:/reacts/7", "+ event undo.received p:/undos/1 p:/reacts/7 by stranger p:/carol"}},
		{name: "undone with another emoji is nothing", given: both(public, sent(react("1", "EmojiReact", bee))), body: undo(react("7", "EmojiReact", `"content":"👍"`))},
		{name: "undone before it came", given: both(public, func(s *peertest.Scene) { s.Followed("p:/carol") }, sent(undo(react("1", "EmojiReact", bee)))), body: react("1", "EmojiReact", bee)},
	})
}

func TestAnEmojiIsOneEmoji(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	posted("as:Public")(s)
	for _, content := range []string{``, `,"content":""`, `,"content":"lovely"`, `,"content":"x"`, `,"content":"🐝 🐝"`, `,"content":"` + strings.Repeat("🐝", 17) + `"`,
		`,"content":":blobcat:"`, `,"content":":blobcat:","tag":{"type":"Emoji","name":":other:"}`, `,"content":":blobcat:","tag":{"type":"Mention","name":":blobcat:"}`,
		`,"content":":` + strings.Repeat("b", 63) + `:","tag":{"type":"Emoji","name":":` + strings.Repeat("b", 63) + `:"}`, `,"content":"<b>🐝</b>"`, `,"content":["🐝"]`,
		`,"content":"\u200d\ufe0f"`, `,"content":"\u2060"`, `,"content":"\u202e🐝"`, `,"content":"🐝\u2066"`} {
		body := `{"id":"p:/reacts/1","type":"EmojiReact","actor":"p:/carol","object":"us:/alice/objects/1"` + content + `}`
		expect(t, s, "EmojiReact"+content, nil, fault.Invalid, func() error { return s.Send("p:/carol", "us:/alice/inbox", body) })
	}
}
