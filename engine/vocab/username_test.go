package vocab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestParseUsernameTakes(t *testing.T) {
	for _, s := range []string{"a", "7", "_", "alice", "alice_2", "well", strings.Repeat("a", 30)} {
		u, err := ParseUsername(s)
		if err != nil || u.String() != s || u.IsZero() {
			t.Errorf("ParseUsername(%q) = %q, %v; want it taken", s, u, err)
		}
	}
}

func TestParseUsernameRefuses(t *testing.T) {
	tests := []struct{ name, username string }{
		{"empty", ""},
		{"NAM-03 over 30 bytes", strings.Repeat("a", 31)},
		{"NAM-03 1 MB", strings.Repeat("a", 1<<20)},
		{"NAM-03 colon", "al:ice"},
		{"NAM-03 star", "*"},
		{"NAM-03 question mark", "a?b"},
		{"NAM-03 brackets", "[a]"},
		{"NAM-03 line end", "alice\n"},
		{"NAM-03 leading line end", "\nalice"},
		{"NAM-03 capitals", "ALICE"},
		{"NAM-03 Cyrillic a", "аlice"},
		{"NAM-03 joiner", "ali\u200dce"},
		{"NAM-03 leading hyphen", "-alice"},
		{"NAM-03 hyphen, which the names of templates have", "lightweb-template"},
		{"NAM-03 .well-known", ".well-known"},
		{"NAM-01 NUL", "alice\x00"},
		{"NAM-01 path", "../../etc"},
		{"NAM-02 escaped path", "..%2f..%2fkeys"},
		{"NAM-02 slash", "alice/../bob"},
		{"NAM-02 backslash", `alice\bob`},
		{"NAM-02 semicolon", "alice;"},
		{"NAM-01 handle", "alice@example.org"},
		{"dot", "alice.b"},
		{"invalid UTF-8", "alic\xff"},
	}
	for _, name := range []string{"actor", "admin", "api", "inbox", "outbox", "instance", "lightweb", "nodeinfo", "root",
		"system", "template", "users", "ws", "well_known"} {
		tests = append(tests, struct{ name, username string }{"NAM-03 reserved " + name, name})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := ParseUsername(tt.username)
			if fault.KindOf(err) != fault.Invalid || !u.IsZero() {
				t.Errorf("ParseUsername(%.40q) = %q, %v; want invalid", tt.username, u, err)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("the refusal has %d bytes, want a short one", len(err.Error()))
			}
		})
	}
}

func TestUsernameTravelsAsItsName(t *testing.T) {
	u, err := ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(u); err != nil || string(b) != `"alice"` {
		t.Errorf("as JSON: %s, %v", b, err)
	}
	v, err := u.Value()
	if err != nil || v != "alice" {
		t.Errorf("as a parameter: %v, %v", v, err)
	}
	var back Username
	if err := back.Scan(v); err != nil || back != u {
		t.Errorf("scanned: %q, %v", back, err)
	}
	for _, v := range []any{nil, 7, []byte("alice"), "ALICE", ""} {
		if err := back.Scan(v); err == nil {
			t.Errorf("Scan(%v) took it, want an error", v)
		}
	}
	if back != u {
		t.Errorf("a failed Scan left %q, want %q as before", back, u)
	}
}
