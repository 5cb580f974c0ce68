package token

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestTokensNameTheirUser(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"alice", "a", "al_ice", "_", "a__", strings.Repeat("z", 30)} {
		u, err := vocab.ParseUsername(name)
		if err != nil {
			t.Fatal(err)
		}
		kind := API
		if len(name)%2 == 0 {
			kind = Session
		}
		secret, digest := New(kind, u)
		if digest != sha256.Sum256([]byte(secret)) {
			t.Errorf("New(%s): the digest is not the token's", u)
		}
		gotKind, got, gotDigest, err := Parse(secret)
		if err != nil || gotKind != kind || got != u || gotDigest != digest {
			t.Errorf("Parse(%q) = %s, %v, want %s", secret, got, err, u)
		}
	}
}

func TestTokensCannotBeGuessed(t *testing.T) {
	t.Parallel()
	u, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[rune]int{}
	for range 500 {
		secret, _ := New(API, u)
		for _, c := range secret[len("lw_alice_"):] {
			seen[c]++
		}
	}
	for _, c := range base62 {
		// about 347 are expected; the bounds are 8 standard deviations away
		if n := seen[c]; n < 200 || n > 520 {
			t.Errorf("of 21500 characters %d are %q, want about 347", n, c)
		}
	}
	if len(seen) != len(base62) {
		t.Errorf("tokens are made of %d characters, want %d", len(seen), len(base62))
	}
}

func TestParseRefusesOtherText(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("x", 43)
	for _, s := range []string{"", "lw_", "lw_alice", "lw_alice_", "alice_" + secret, "lw_" + secret, "lw__" + secret, "lw_Alice_" + secret,
		"lw_admin_" + secret, "lw_alice_" + secret[1:], "lw_alice_" + secret + "x", "lw_alice_" + secret[1:] + "-", "LW_alice_" + secret,
		" lw_alice_" + secret, "lw_alice_" + secret + "\n", "lw_al/ice_" + secret} {
		if _, u, _, err := Parse(s); fault.KindOf(err) != fault.Unauthenticated || err == nil || !u.IsZero() {
			t.Errorf("Parse(%q) = %s, %v, want Unauthenticated", s, u, err)
		}
	}
}
