package vocab

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// dangerous are addresses that lead elsewhere than to the web, in the ways in which browsers read
// them. The first ones run or bring a document.
var dangerous = []string{"javascript:alert(1)", " \u0001javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscr\nipt\r:alert(1)", "\u202ejava\u202escript:alert(1)", "javascript&#58;alert(1)<br>",
	"<b></b>javascript:alert(1)", "vbscript:x", "data:text/html,<script>alert(1)</script>", "data:text/html;base64,PHNjcmlwdD4=", "DATA:image/svg+xml,x",
	"file:///etc/passwd", "blob:https://x.example/1", "intent://x#Intent;end", "steam://run/1", "//x.example/y", "/settings", "https:/x.example", "https:///x", "https://x.example/\u202egnp.exe"}

const runs = 11 // of the dangerous addresses, from the first

// No text of a shown object or activity begins with an address that a browser would run, unless it
// is a text for readers. Members that are addresses lead to the web or to mail.
func TestShownAddressesLeadToTheWebAlone(t *testing.T) {
	t.Parallel()
	for n, bad := range dangerous {
		text, _ := json.Marshal(bad)
		forms := []string{`"url":%`, `"url":[%,{"type":"Link","href":%,"mediaType":"text/html"}]`, `"url":{"type":"Link","href":%}`, `"href":%`, `"image":%`, `"icon":[%]`, `"icon":{"type":"Image","url":%}`,
			`"image":{"type":"Image","url":[{"type":"Link","href":%}]}`, `"attachment":%`, `"attachment":[{"type":"Document","url":%,"href":%,"icon":%},{"type":"Image","url":{"href":%}}]`,
			`"tag":[{"type":"Mention","href":%,"name":"x"},{"type":"Emoji","name":":x:","icon":{"url":%}},{"type":"Link","rel":"https://misskey-hub.net/ns#_misskey_quote","href":%}]`,
			`"location":{"type":"Place","url":%}`, `"preview":{"type":"Link","href":%}`, `"preview":%`, `"quoteUrl":%,"_misskey_quote":%,"quoteUri":%,"quote":{"type":"Link","href":%}`, `"generator":{"type":"Application","url":%,"icon":{"url":%}}`,
			`"oneOf":[{"type":"Note","name":"x","url":%}]`, `"replies":{"type":"Link","href":%}`, `"unknown":{"deep":[[{"url":[[%]]}]]}`, `"target":{"type":"Link","href":%},"context":{"type":"Link","href":%}`}
		if n < runs {
			forms = append(forms, `"location":%`, `"tag":%`, `"generator":%`, `"conversation":%`, `"to":[%],"inReplyTo":%`, `"attachment":{"type":"PropertyValue","value":%,"src":%}`, `"replies":{"id":%,"type":"Collection"}`, `"unknown":{"@id":%,"@value":[%]}`)
		}
		for _, form := range forms {
			d := parse(t, `{"id":"https://p.example/1","type":"Note",`+strings.ReplaceAll(form, "%", string(text))+`}`)
			checkAddresses(t, Show(d, Readable(d, nil), nil))
			d = parse(t, `{"id":"https://p.example/2","type":"Like","actor":"https://p.example/bob","content":":x:",`+strings.ReplaceAll(form, "%", string(text))+`}`)
			checkAddresses(t, ShowActivity(d, false, true))
		}
	}
}

func TestShownAddresses(t *testing.T) {
	t.Parallel()
	const web = `"icon":{"type":"Image","url":"https://p.example/i.png"},"image":"http://p.example/i.png","tag":[{"href":"https://p.example/bob","name":"@bob","type":"Mention"},"nsfw"],` +
		`"url":["https://p.example/1",{"href":"HTTPS://p.example/v.mp4","type":"Link"},{"href":"mailto:bob@p.example","type":"Link"}]`
	for _, tt := range []struct{ name, object, want string }{
		{"of the web and of mail", web, web},
		{"one of several", `"url":["javascript:x","https://p.example/1"]`, `"url":["https://p.example/1"]`},
		{"a Link whose address is not shown", `"url":[{"type":"Link","mediaType":"application/x-bittorrent","href":"magnet:?xt=urn:btih:1"},{"type":"Link","href":"https://p.example/1"}],"icon":{"type":"Link","href":"wss://p.example","mediaType":"x"}`,
			`"url":[{"href":"https://p.example/1","type":"Link"}]`},
		{"a Mention whose address is not shown", `"tag":{"href":"acct:bob@p.example","name":"@bob","type":"Mention"}`, `"tag":{"name":"@bob","type":"Mention"}`},
		{"ids of other schemes", `"context":"tag:p.example,2026:1","conversation":"urn:uuid:1"`, `"context":"tag:p.example,2026:1","conversation":"urn:uuid:1"`},
		{"texts for readers", `"name":"JavaScript: the good parts","oneOf":[{"name":"data: yes"}],"summary":"data: two"`, `"name":"JavaScript: the good parts","oneOf":[{"name":"data: yes"}],"summary":"data: two"`},
		{"a place in words", `"location":"Java: the island"`, `"location":"Java: the island"`},
	} {
		d := parse(t, `{`+tt.object+`}`)
		if got := string(Show(d, Readable(d, nil), nil).JSON()); got != `{`+tt.want+`}` {
			t.Errorf("%s: shown as\n%s, want\n{%s}", tt.name, got, tt.want)
		}
	}
}

// Texts other than content have no control characters and none that control the direction of
// writing, in whichever member they are. Emojis that are joined, and letters that are kept apart,
// stay whole.
func TestShownTextsTurnNoWriting(t *testing.T) {
	t.Parallel()
	turned := ""
	for r := rune(1); r < 0x2100; r++ {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			turned += string(r)
		}
	}
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	bad := text("a" + turned + "b")
	for _, form := range []string{`"name":%,"nameMap":{"en":%}`, `"nameMap":{"en":%}`, `"summary":%`, `"summaryMap":{"de":%,"en":"x"}`, `"tag":[{"type":"Hashtag","name":%},%]`, `"oneOf":[{"type":"Note","name":%}]`, `"anyOf":{"name":[%]}`,
		`"attachment":[{"type":"Image","name":%,"url":"https://p.example/i"},{"type":"PropertyValue","name":%,"value":%}]`, `"icon":{"name":%}`, `"location":{"name":%,"address":{"addressLocality":%}}`, `"_misskey_summary":%`, `"unknown":[[%]]`} {
		d := parse(t, `{"type":"Note",`+strings.ReplaceAll(form, "%", bad)+`}`)
		for _, languages := range [][]string{nil, {"de"}, {"en"}} {
			shown := string(Show(d, Readable(d, nil), languages).JSON())
			var back any
			if err := json.Unmarshal([]byte(shown), &back); err != nil || strings.ContainsFunc(fmt.Sprint(back), func(r rune) bool { return strings.ContainsRune(turned, r) }) {
				t.Errorf("%s is shown as %q, %v", form, shown, err)
			}
		}
	}
	d := parse(t, `{"type":"Like","content":"\u202e👍\u2069","tag":[{"type":"Emoji","name":":x:\u202e"}]}`)
	if got := ShowActivity(d, false, true).Text("content"); got != "👍" {
		t.Errorf("the emoji is %q", got)
	}
	for _, tt := range []struct{ member, said, want string }{
		{"name", "one\ntwo \u0007 \u202ethree", "one two three"},
		{"summary", "one\r\ntwo\t\u2067three\u2069\u0085", "one\ntwo\tthree "},
		{"summary", "👩\u200d👩\u200d👧 می\u200cخواهم שלום", "👩\u200d👩\u200d👧 می\u200cخواهم שלום"},
		{"name", "👩\u200d🚀 می\u200cخواهم", "👩\u200d🚀 می\u200cخواهم"},
	} {
		d := Doc{tt.member: tt.said}
		if got := Show(d, Readable(d, nil), nil).Text(tt.member); got != tt.want {
			t.Errorf("%s %q is shown as %q, want %q", tt.member, tt.said, got, tt.want)
		}
	}
	described := Doc{"attachment": Doc{"type": "Image", "name": "one\ntwo\u202e"}, "tag": Doc{"type": "Hashtag", "name": "#a\n#b\u202e"}}
	shown := Show(described, Doc{}, nil)
	if got := shown.Sub("attachment").Text("name") + "; " + shown.Sub("tag").Text("name"); got != "one\ntwo; #a #b" {
		t.Errorf("shown as %q", got)
	}
}

// schemeOf matches the scheme of an address after readAddress.
var schemeOf = regexp.MustCompile(`^([a-z][a-z0-9+.-]*):`)

// readAddress returns an address as a browser reads it (URL Living Standard §4.4).
func readAddress(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	return strings.ToLower(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s))
}

// checkAddresses checks each text of a shown document that is not a text for readers.
func checkAddresses(t *testing.T, d Doc) {
	t.Helper()
	var walk func(member string, v any)
	walk = func(member string, v any) {
		switch v := v.(type) {
		case Doc:
			for name, one := range v {
				walk(name, one)
			}
		case []any:
			for _, one := range v {
				walk(member, one)
			}
		case string:
			scheme := ""
			if found := schemeOf.FindStringSubmatch(readAddress(v)); found != nil {
				scheme = found[1]
			}
			switch isAddress := slices.Contains([]string{"url", "href", "icon", "image", "attachment", "preview", "quote", "quoteUrl", "quoteUri"}, member); {
			case member == "content" || member == "name" || member == "summary":
			case isAddress && scheme != "http" && scheme != "https" && scheme != "mailto", slices.Contains([]string{"javascript", "vbscript", "data"}, scheme),
				isAddress && strings.ContainsRune(v, '\u202e'):
				t.Errorf("%s is %q in %s", member, v, d.JSON())
			}
		}
	}
	walk("", d)
}
