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
