package feed

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
)

func TestCursorNamesExactlyOnePlaceInOneScope(t *testing.T) {
	t.Parallel()
	place := user.Place{At: time.Date(2026, 2, 21, 12, 0, 0, 123456000, time.UTC), ID: uuid.MustParse("019474a1-0000-7000-8000-000000000001"), Offset: 70_000}
	const scope = "alice/feed/main"
	text := EncodeCursor(scope, place)
	if len(text) > 128 {
		t.Fatalf("EncodeCursor gives %d characters, want at most 128", len(text))
	}
	other := []byte(text)
	other[20] ^= 1
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	raw[0]++
	for _, c := range []struct {
		name, scope, text string
		want              *user.Place
		bad               bool
	}{
		{name: "what was given out", scope: scope, text: text, want: &place},
		{name: "no text is the beginning", scope: scope},
		{name: "TEN-08 another user's", scope: "bob/feed/main", text: text, bad: true},
		{name: "another feed's", scope: "alice/feed/notifications", text: text, bad: true},
		{name: "another collection's", scope: "alice/outbox", text: text, bad: true},
		{name: "changed", scope: scope, text: string(other), bad: true},
		{name: "of another version", scope: scope, text: base64.RawURLEncoding.EncodeToString(raw), bad: true},
		{name: "padded", scope: scope, text: text + "==", bad: true},
		{name: "with a line end", scope: scope, text: text[:10] + "\n" + text[10:], bad: true},
		{name: "with a line end in place of a character", scope: scope, text: text[:10] + "\n" + text[11:], bad: true},
		{name: "short", scope: scope, text: text[:40], bad: true},
		{name: "long", scope: scope, text: strings.Repeat("A", 1<<16), bad: true},
		{name: "in the other alphabet", scope: scope, text: strings.Repeat("+/", 24), bad: true},
		{name: "CO-10 junk", scope: scope, text: "0", bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeCursor(c.scope, c.text)
			if c.bad {
				if fault.KindOf(err) != fault.Invalid || got != nil {
					t.Errorf("DecodeCursor = %v, %v, want Invalid", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != (c.want == nil) || got != nil && (!got.At.Equal(c.want.At) || got.ID != c.want.ID || got.Offset != c.want.Offset) {
				t.Errorf("DecodeCursor = %v, want %v", got, c.want)
			}
		})
	}
}

func TestCursorKeepsPlacesOutsideTheUsualYears(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC)} {
		got, err := DecodeCursor("s", EncodeCursor("s", user.Place{At: at}))
		if err != nil || !got.At.Equal(at) {
			t.Errorf("DecodeCursor(EncodeCursor(%v)) = %v, %v", at, got, err)
		}
	}
}

func FuzzDecodeCursor(f *testing.F) {
	const scope = "alice/feed/main"
	f.Add(scope, EncodeCursor(scope, user.Place{At: time.Unix(1771675200, 0), ID: [16]byte{1}}))
	f.Add(scope, strings.Repeat("A", cursorText))
	f.Add("", "")
	f.Fuzz(func(t *testing.T, scope, text string) {
		p, err := DecodeCursor(scope, text)
		switch {
		case err != nil:
			if fault.KindOf(err) != fault.Invalid || p != nil {
				t.Errorf("DecodeCursor(%q) = %v, %v, want Invalid", text, p, err)
			}
		case p == nil:
			if text != "" {
				t.Errorf("DecodeCursor(%q) is the beginning", text)
			}
		case EncodeCursor(scope, *p) != text:
			t.Errorf("DecodeCursor(%q) is the place of another text, %q", text, EncodeCursor(scope, *p))
		}
		if p != nil {
			if _, err := DecodeCursor(scope+"x", text); err == nil {
				t.Errorf("DecodeCursor takes %q in another scope", text)
			}
		}
	})
}
