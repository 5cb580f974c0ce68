package vocab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestCheckBounds(t *testing.T) {
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	list := func(n int) string { return `[` + strings.TrimPrefix(strings.Repeat(`,"x"`, n), ",") + `]` }
	for _, tt := range []struct {
		kind, member string
		value        func(n int) string
		most         int
		pointer      string
	}{
		{"Note", "content", text, 128 << 10, "/object/content"},
		{"Article", "content", text, 512 << 10, "/object/content"},
		{"KeyPackage", "content", text, 128 << 10, "/object/content"},
		{"PrivateMessage", "summary", text, 4 << 10, "/object/summary"},
		{"Note", "name", text, 4 << 10, "/object/name"},
		{"Article", "summary", text, 4 << 10, "/object/summary"},
		{"Note", "contentMap", func(n int) string { return `{"de":"x","en":` + text(n) + `}` }, 128 << 10, "/object/contentMap"},
		{"Note", "summaryMap", func(n int) string { return `{"en":` + text(n) + `}` }, 4 << 10, "/object/summaryMap"},
		{"Note", "source", func(n int) string { return `{"content":` + text(n) + `}` }, 128 << 10, "/object/source/content"},
		{"Note", "tag", list, 256, "/object/tag"},
		{"Note", "attachment", list, 64, "/object/attachment"},
	} {
		for more := range 2 {
			d := parse(t, fmt.Sprintf(`{"type":%q,%q:%s}`, tt.kind, tt.member, tt.value(tt.most+more)))
			err := CheckBounds(d, "/object")
			if (err != nil) != (more == 1) {
				t.Errorf("%s of %s with %d: %v", tt.member, tt.kind, tt.most+more, err)
			}
			if e := fault.Of(err); more == 1 && (e == nil || e.Kind != fault.Invalid || e.Pointer != tt.pointer) {
				t.Errorf("%s of %s: %v, want one that points to %s", tt.member, tt.kind, err, tt.pointer)
			}
		}
	}
	if err := CheckBounds(parse(t, `{"type":"Person","summary":`+text(100_000)+`}`), "/object"); err != nil {
		t.Errorf("an actor that says much of itself: %v", err)
	}
	for _, kind := range []string{`"PrivateMessage"`, `["ChatMessage","PrivateMessage"]`, `"mls:Welcome"`} {
		if err := CheckBounds(parse(t, `{"type":`+kind+`,"content":`+text(1<<20)+`}`), "/object"); err != nil {
			t.Errorf("a message of MLS, %s: %v", kind, err)
		}
	}
}

func TestCheckBoundsRefusesWhatNoTypeHas(t *testing.T) {
	for _, kind := range []string{`"lemmy:Foo-2_b.c~d"`, `"https://[2001:db8::1]:80/ns/%C3%A9?a=(b)&c='d'*+,;!$@#Foo"`, `["Note","Größe投稿पोस्ट٣"]`} {
		if err := CheckBounds(parse(t, `{"type":`+kind+`}`), ""); err != nil {
			t.Errorf("the type %s: %v", kind, err)
		}
	}
	for _, c := range []string{`\n`, `\r`, `\t`, `\u001b`, `\u007f`, `\u0080`, `\u0085`, `\u009f`, " ", `\u00a0`, `\u2003`, `\u3000`, `\u2028`, `\u2029`, `\u200b`, `\u200d`, `\u202e`, `\ufeff`,
		`\ue000`, `\ufffe`, `\ufffd`, `\"`, `\\`, "<", ">", "^", "`", "{", "|", "}", "\U0001f600"} {
		for doc, pointer := range map[string]string{`{"type":["Note","Li` + c + `ke"]}`: "/object/type", `{"type":["Person","Li` + c + `ke"]}`: "/object/type", `{"@type":"Li` + c + `ke"}`: "/object/@type"} {
			err := CheckBounds(parse(t, doc), "/object")
			if e := fault.Of(err); e == nil || e.Kind != fault.Invalid || e.Pointer != pointer {
				t.Errorf("PAR-06 %s: %v, want one that points to %s", doc, err, pointer)
			}
		}
	}
}
