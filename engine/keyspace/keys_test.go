package keyspace

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// TEN-01, TEN-04: for any keys, two users never have the same full key.
func TestNoTwoKeysMeet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &Store{cluster: rapid.Bool().Draw(t, "cluster")}
		name := rapid.StringMatching(`[a-z0-9_]{1,4}`)
		text := rapid.OneOf(rapid.StringMatching(`[a-c:{}@]{0,6}`), rapid.String())
		draw := func(which string) (owner, key, full string) {
			u, err := vocab.ParseUsername(name.Draw(t, "user"+which))
			if err != nil {
				t.Skip("a reserved name")
			}
			key = text.Draw(t, "key"+which)
			return u.String(), key, s.Of(u).key(key)
		}
		u1, k1, full1 := draw("1")
		u2, k2, full2 := draw("2")
		if (full1 == full2) != (u1 == u2 && k1 == k2) {
			t.Fatalf("%q of %s is %q, %q of %s is %q", k1, u1, full1, k2, u2, full2)
		}
	})
}
