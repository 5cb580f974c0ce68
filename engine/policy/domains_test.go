package policy

import (
	"strings"
	"testing"
)

func TestDomainsAllows(t *testing.T) {
	for _, tt := range []struct {
		name, host string
		blocked    []string
		allowed    []string
		mode       Mode
		want       bool
	}{
		{name: "open lets anybody in", host: "good.example", want: true},
		{name: "MOD-01 the domain itself is blocked", host: "evil.example", blocked: []string{"evil.example"}},
		{name: "MOD-01 a subdomain is blocked", host: "a.b.evil.example", blocked: []string{"evil.example"}},
		{name: "MOD-01 a name that only ends alike is not", host: "notevil.example", blocked: []string{"evil.example"}, want: true},
		{name: "MOD-01 the domain above is not", host: "example", blocked: []string{"evil.example"}, want: true},
		{name: "MOD-01 case does not matter", host: "EVIL.example", blocked: []string{"Evil.Example"}},
		{name: "MOD-01 a trailing dot does not matter", host: "evil.example.", blocked: []string{"evil.example"}},
		{name: "MOD-01 a trailing dot on the list does not matter", host: "evil.example", blocked: []string{"evil.example."}},
		{name: "MOD-01 the port does not matter", host: "evil.example:8443", blocked: []string{"evil.example"}},
		{name: "MOD-01 a U-label is its A-label", host: "xn--bse-sna.example", blocked: []string{"böse.example"}},
		{name: "MOD-01 an A-label is its U-label", host: "BÖSE.example", blocked: []string{"xn--bse-sna.example"}},
		{name: "MOD-01 full width letters are letters", host: "ｅvil.example", blocked: []string{"evil.example"}},
		{name: "MOD-01 an ideographic full stop is a dot", host: "evil。example。", blocked: []string{"evil.example"}},
		{name: "MOD-01 an address is blocked", host: "192.0.2.7:443", blocked: []string{"192.0.2.7"}},
		{name: "MOD-01 a mapped address is the address", host: "[::ffff:192.0.2.7]:443", blocked: []string{"192.0.2.7"}},
		{name: "MOD-01 an IPv6 address has many spellings", host: "[2001:DB8:0::1]", blocked: []string{"2001:db8::1"}},
		{name: "addresses do not match by labels", host: "10.192.0.2", blocked: []string{"0.2"}, want: true},
		{name: "a wildcard is taken for its domain", host: "a.evil.example", blocked: []string{"*.evil.example"}},
		{name: "MOD-04 an empty entry blocks nothing", host: "good.example", blocked: []string{"", " ", "*", "."}, want: true},
		{name: "nothing is no host", host: ""},
		{name: "a dot is no host", host: "."},
		{name: "an empty label is no host", host: "a..example"},
		{name: "words are no host", host: "not a host"},
		{name: "user info is no host", host: "user@good.example"},
		{name: "a name that is too long is no host", host: strings.Repeat("a.", 127) + "example"},
		{name: "MOD-06 allowlist refuses who is not on it", host: "other.example", allowed: []string{"good.example"}, mode: Allowlist},
		{name: "MOD-06 allowlist lets in who is on it", host: "good.example", allowed: []string{"good.example"}, mode: Allowlist, want: true},
		{name: "MOD-06 allowlist lets in what is below", host: "a.good.example", allowed: []string{"good.example"}, mode: Allowlist, want: true},
		{name: "MOD-06 an empty allowlist lets nobody in", host: "good.example", mode: Allowlist},
		{name: "the allowed list means nothing when open", host: "other.example", allowed: []string{"good.example"}, want: true},
		{name: "a block holds against an allowance", host: "a.good.example", blocked: []string{"a.good.example"}, allowed: []string{"good.example"}, mode: Allowlist},
		{name: "a block above holds against an allowance", host: "a.evil.example", blocked: []string{"evil.example"}, allowed: []string{"a.evil.example"}, mode: Allowlist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NewDomains(tt.blocked, tt.allowed, tt.mode).IsAllowed(tt.host); got != tt.want {
				t.Errorf("Allows(%q) = %v, want %v", tt.host, got, tt.want)
			}
		})
	}
}

func TestRegistrableDomain(t *testing.T) {
	for _, tt := range []struct{ host, want string }{
		{"example.org", "example.org"},
		{"a.b.example.org:8443", "example.org"},
		{"A.EXAMPLE.co.uk.", "example.co.uk"},
		{"alice.github.io", "alice.github.io"},
		{"x.alice.github.io", "alice.github.io"},
		{"co.uk", "co.uk"},
		{"a.böse.example", "xn--bse-sna.example"},
		{"a.b.unknownsuffix", "b.unknownsuffix"},
		{"127.0.0.2:8081", "127.0.0.2:8081"},
		{"127.0.0.2", "127.0.0.2"},
		{"[::1]:8081", "[::1]:8081"},
		{"localhost:8081", "localhost:8081"},
		{"", ""},
	} {
		if got := RegistrableDomain(tt.host); got != tt.want {
			t.Errorf("RegistrableDomain(%q) = %q, want %q", tt.host, got, tt.want)
		}
	}
}

func FuzzDomains(f *testing.F) {
	f.Add("evil.example:443")
	f.Add("[::ffff:1.2.3.4]:1")
	f.Add("EVIL.。example..")
	f.Add("a.xn--bse-sna.example")
	f.Add("1.2.3.e")
	f.Fuzz(func(t *testing.T, host string) {
		name := normalizeDomain(host)
		if slow := normalizeAny(host); slow != name {
			t.Fatalf("normalize(%q) = %q, the long way %q", host, name, slow)
		}
		if again := normalizeDomain(name); again != name {
			t.Fatalf("normalize(%q) = %q, and of that %q", host, name, again)
		}
		if name != "" && NewDomains([]string{host}, nil, Open).IsAllowed(name) && host[0] != '*' {
			t.Fatalf("%q is blocked and yet allowed as %q", host, name)
		}
	})
}
