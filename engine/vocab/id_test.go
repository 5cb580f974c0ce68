package vocab

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestParseIDTakes(t *testing.T) {
	tests := []struct{ name, id, host, canonical string }{
		{"AS-18 as written", "https://peer.example/notes/1", "peer.example", "https://peer.example/notes/1"},
		{"AS-18 scheme and host in capitals", "HTTPS://Peer.Example/Notes/1", "peer.example", "https://peer.example/Notes/1"},
		{"AS-18 default port", "https://peer.example:443/a", "peer.example", "https://peer.example/a"},
		{"AS-18 default port of http", "http://peer.example:80/a", "peer.example", "http://peer.example/a"},
		{"AS-18 the other scheme's port", "http://peer.example:443/a", "peer.example:443", "http://peer.example:443/a"},
		{"another port", "https://peer.example:8443/a", "peer.example:8443", "https://peer.example:8443/a"},
		{"AS-18 all at once", "HTTPS://P:443/a", "p", "https://p/a"},
		{"ORG-21 query and fragment are part of the id", "https://peer.example/a?b=C#d", "peer.example", "https://peer.example/a?b=C#d"},
		{"no path", "https://peer.example", "peer.example", "https://peer.example"},
		{"a query after the host", "https://Peer.example?author=0", "peer.example", "https://peer.example?author=0"},
		{"escapes in the path stay", "https://peer.example/%7Ea/%2e", "peer.example", "https://peer.example/%7Ea/%2e"},
		{"letters beyond ASCII in the path", "https://peer.example/ü", "peer.example", "https://peer.example/ü"},
		{"NAM-05 U-label", "https://Bücher.example/a", "xn--bcher-kva.example", "https://xn--bcher-kva.example/a"},
		{"NAM-05 A-label in capitals", "https://XN--BCHER-KVA.example/a", "xn--bcher-kva.example", "https://xn--bcher-kva.example/a"},
		{"NAM-05 escaped U-label", "https://b%C3%BCcher.example/a", "xn--bcher-kva.example", "https://xn--bcher-kva.example/a"},
		{"NAM-05 a homograph is another host", "https://pаypal.example/", "xn--pypal-4ve.example", "https://xn--pypal-4ve.example/"},
		{"NAM-05 full stop of another script", "https://peer。example/", "peer.example", "https://peer.example/"},
		{"NAM-05 underscore", "https://my_peer.example/", "my_peer.example", "https://my_peer.example/"},
		{"IPv4", "http://127.0.0.1:8080/a", "127.0.0.1:8080", "http://127.0.0.1:8080/a"},
		{"IPv6", "https://[2001:db8::1]/a", "[2001:db8::1]", "https://[2001:db8::1]/a"},
		{"IPv6 in another spelling", "https://[2001:0DB8:0:0::1]:8443/a", "[2001:db8::1]:8443", "https://[2001:db8::1]:8443/a"},
		{"PAR-18 the longest", "https://peer.example/" + strings.Repeat("a", MaxID-21), "peer.example", "https://peer.example/" + strings.Repeat("a", MaxID-21)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id, err := ParseID(tt.id)
			if err != nil || string(id) != tt.canonical {
				t.Fatalf("IDN-01 ParseID(%q) = %q, %v; want the canonical form %q", tt.id, id, err, tt.canonical)
			}
			if again, err := ParseID(string(id)); err != nil || again != id {
				t.Fatalf("ParseID(%q) = %q, %v; want it as it is", id, again, err)
			}
			if written := ID(tt.id); written.Canonical() != id || written.Host() != id.Host() || !written.Same(id) {
				t.Errorf("%q has the canonical form %q, want %q", written, written.Canonical(), id)
			}
			if id.Host() != tt.host || string(id.Canonical()) != tt.canonical {
				t.Errorf("%q: host %q, canonical %q; want %q, %q", id, id.Host(), id.Canonical(), tt.host, tt.canonical)
			}
			if !id.Same(ID(tt.canonical)) || !id.SameOrigin(ID(tt.canonical)) {
				t.Errorf("%q and %q differ, want the same", id, tt.canonical)
			}
		})
	}
}

func TestParseIDRefuses(t *testing.T) {
	tests := []struct{ name, id string }{
		{"empty", ""},
		{"PAR-18 over 1024 bytes", "https://peer.example/" + strings.Repeat("a", MaxID-20)},
		{"relative", "/users/carol"},
		{"without scheme", "//peer.example/users/carol"},
		{"SIG-30 acct", "acct:carol@peer.example"},
		{"SIG-30 did", "did:key:z6Mk"},
		{"SIG-30 data", "data:application/json,{}"},
		{"SIG-30 file", "file:///etc/passwd"},
		{"SIG-30 gopher", "gopher://peer.example/"},
		{"opaque", "https:peer.example"},
		{"one slash", "https:/peer.example/a"},
		{"no host", "https:///a"},
		{"port only", "https://:443/a"},
		{"user", "https://carol@peer.example/"},
		{"SIG-04 password", "https://peer.example:x@evil.example/"},
		{"empty user", "https://@peer.example/"},
		{"backslash", `https://peer.example\@evil.example/`},
		{"space", "https://peer.example/a b"},
		{"leading space", " https://peer.example/"},
		{"line end", "https://peer.example/\nSet-Cookie: a"},
		{"quote", `https://peer.example/"><script>`},
		{"PAR-06 NUL", "https://peer.example/\x00"},
		{"PAR-06 invalid UTF-8", "https://peer.example/\xff"},
		{"PAR-06 turned writing direction", "https://peer.example/\u202egpj.exe"},
		{"PAR-06 white space beyond ASCII", "https://peer.example/a\u00a0b"},
		{"malformed escape", "https://peer.example/%zz"},
		{"SIG-04 escape in the host", "https://peer%2eexample/"},
		{"MOD-01 trailing dot", "https://peer.example./a"},
		{"MOD-01 trailing dot before a port", "https://peer.example.:443/a"},
		{"MOD-01 trailing dot of another script", "https://peer.example。/a"},
		{"leading dot", "https://.peer.example/"},
		{"empty label", "https://peer..example/"},
		{"label over 63 bytes", "https://" + strings.Repeat("a", 64) + ".example/"},
		{"name over 253 bytes", "https://" + strings.Repeat("a.", 127) + "example/"},
		{"punctuation in the host", "https://peer;example/"},
		{"what maps to a slash", "https://℀.example/"},
		{"joiner in the host", "https://pe\u200der.example/"},
		{"empty port", "https://peer.example:/"},
		{"port 0", "https://peer.example:0/"},
		{"port 65536", "https://peer.example:65536/"},
		{"port with a leading zero", "https://peer.example:0443/"},
		{"port with a sign", "https://peer.example:+443/"},
		{"IPv6 with a zone", "https://[fe80::1%25eth0]/"},
		{"a name in brackets", "https://[peer.example]/"},
		{"IPv4 in brackets", "https://[127.0.0.1]/"},
		{"open bracket", "https://[::1/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if id, err := ParseID(tt.id); fault.KindOf(err) != fault.Invalid {
				t.Errorf("ParseID(%q) = %q, %v; want invalid", tt.id, id, err)
			}
			if id := ID(tt.id); id.Host() != "" || id.Origin() != "" || id.SameOrigin(id) {
				t.Errorf("%q: host %q, origin %q; want none", tt.id, id.Host(), id.Origin())
			}
			if id := ID(tt.id); id.Canonical() != id {
				t.Errorf("%q: canonical %q, want it as it is", tt.id, id.Canonical())
			}
		})
	}
}

func TestAnIDFitsInCanonicalForm(t *testing.T) {
	written := "https://büch.example/" + strings.Repeat("a", MaxID-22)
	if id, err := ParseID(written); fault.KindOf(err) != fault.Invalid || len(written) != MaxID {
		t.Errorf("PAR-18 ParseID of %d bytes, more as A-labels = %d bytes, %v; want invalid", len(written), len(id), err)
	}
}

func TestSameOriginIsSchemeHostAndPort(t *testing.T) {
	const id ID = "https://peer.example/users/carol"
	tests := []struct {
		name  string
		other ID
		want  bool
	}{
		{"itself", id, true},
		{"another path", "https://peer.example/x", true},
		{"another spelling", "https://PEER.example:443", true},
		{"another scheme", "http://peer.example/users/carol", false},
		{"another port", "https://peer.example:8443/users/carol", false},
		{"a subdomain", "https://a.peer.example/users/carol", false},
		{"SIG-04 a longer name", "https://peer.example.evil.example/users/carol", false},
		{"nothing", "", false},
		{"Public", Public, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := id.SameOrigin(tt.other); got != tt.want {
				t.Errorf("SameOrigin(%q) = %t, want %t", tt.other, got, tt.want)
			}
			if got := tt.other.SameOrigin(id); got != tt.want {
				t.Errorf("the other way round: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestSameTellsTwinsFromOthers(t *testing.T) {
	const id ID = "https://peer.example/notes/1"
	for other, want := range map[ID]bool{
		"HTTPS://PEER.EXAMPLE:443/notes/1": true,
		"https://peer.example/notes/1?x":   false,
		"https://peer.example/notes/1#a":   false,
		"https://peer.example/Notes/1":     false,
		"https://peer.example/notes/1/":    false,
		"http://peer.example/notes/1":      false,
		"":                                 false,
	} {
		if got := id.Same(other); got != want {
			t.Errorf("Same(%q) = %t, want %t", other, got, want)
		}
	}
}

func TestDocumentIsTheIDWithoutFragment(t *testing.T) {
	if d := ID("https://peer.example/users/carol#main-key").Document(); d != "https://peer.example/users/carol" {
		t.Errorf("Document() = %q, want the actor", d)
	}
}

func TestCanonicalIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`(?i:https?)://[a-zA-ZüßА-я0-9_.。-]{1,12}(:[0-9]{1,5})?([/?#][ -~ü]{0,8})?`).Draw(t, "id")
		id, err := ParseID(s)
		if err != nil {
			t.Skip("no id")
		}
		if again, err := ParseID(string(id)); err != nil || again != id {
			t.Fatalf("canonical form %q of %q: %q, %v", id, s, again, err)
		}
		c := ID(s).Canonical()
		if c != id || c.Canonical() != c || c.Host() != id.Host() || !c.Same(ID(s)) || strings.ToLower(c.Host()) != c.Host() {
			t.Fatalf("%q has the canonical form %q, which has %q", s, c, c.Canonical())
		}
	})
}

func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ written, want string }{
		{"Down.Example", "down.example"},
		{"Bücher.example:443", "xn--bcher-kva.example"},
		{"down.example:8443", "down.example:8443"},
		{"[::1]:8443", "[::1]:8443"},
		{"", ""},
		{"https://down.example", ""},
		{"down.example/", ""},
		{"down.example?x", ""},
		{"down.example#x", ""},
		{"bob@down.example", ""},
	} {
		got, err := ParseHost(tt.written)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("ParseHost(%q) = %q, %v; want %q", tt.written, got, err, tt.want)
		}
	}
}
