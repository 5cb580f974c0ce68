package vocab

import (
	"encoding/hex"
	"strings"
	"testing"
)

const synchronization = `collectionId="https://example.org/users/1/followers", url="https://example.org/users/1/followers_synchronization", ` +
	`digest="c33f48cd341ef046a206b8a72ec97af65079f9a3a9b90eef79c5920dce45c61f"`

// FE-08: the digest of followers equals the digest in FEP-8fcf, in any order of the followers.
func TestFollowersHaveTheDigestOfTheProposal(t *testing.T) {
	const one, two = ID("https://testing.example.org/users/1"), ID("https://testing.example.org/users/2")
	const want = "c33f48cd341ef046a206b8a72ec97af65079f9a3a9b90eef79c5920dce45c61f"
	for _, ids := range [][]ID{{one, two}, {two, one}} {
		if d := DigestOf(ids...); hex.EncodeToString(d[:]) != want {
			t.Errorf("the digest of %v is %x, want %s", ids, d, want)
		}
	}
	if d := DigestOf(); d != (FollowersDigest{}) {
		t.Errorf("the digest of nobody is %x, want zeros", d)
	}
}

func TestParseSynchronization(t *testing.T) {
	s, err := ParseSynchronization(synchronization)
	if err != nil {
		t.Fatal(err)
	}
	if s.Collection != "https://example.org/users/1/followers" || s.URL != s.Collection+"_synchronization" ||
		s.Digest != DigestOf("https://testing.example.org/users/1", "https://testing.example.org/users/2") {
		t.Errorf("it says %+v", s)
	}
	if s.String() != synchronization {
		t.Errorf("it is written %s", s)
	}
	parts := strings.Split(synchronization, ", ")
	for name, field := range map[string]string{
		"in another order, without spaces":        parts[2] + "," + parts[0] + "," + parts[1],
		"with a parameter that nobody here knows": synchronization + `, later="x"`,
		"in capitals":           strings.Replace(synchronization, "c33f48cd", "C33F48CD", 1),
		"with a comma in an id": strings.Replace(synchronization, "users/1/followers\"", "users/1,2/followers\"", 1),
	} {
		if got, err := ParseSynchronization(field); err != nil || got.Digest != s.Digest || got.URL != s.URL {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, field := range map[string]string{
		"nothing":                    "",
		"without a digest":           parts[0] + "," + parts[1],
		"without a url":              parts[0] + "," + parts[2],
		"without a collection":       parts[1] + "," + parts[2],
		"a parameter twice":          synchronization + "," + parts[1],
		"a short digest":             strings.Replace(synchronization, "c33f", "", 1),
		"a long digest":              strings.Replace(synchronization, "c33f", "c33fc33f", 1),
		"a digest that is no hex":    strings.Replace(synchronization, "c33f", "x33f", 1),
		"no quotes":                  strings.ReplaceAll(synchronization, `"`, ""),
		"an open quote":              strings.TrimSuffix(synchronization, `"`),
		"a comma at the end":         synchronization + ",",
		"text behind":                synchronization + " x",
		"a url of another scheme":    strings.Replace(synchronization, `url="https`, `url="ftp`, 1),
		"a url that is relative":     strings.Replace(synchronization, `url="https://example.org`, `url="`, 1),
		"a line break":               strings.Replace(synchronization, "users/1", "users\r\n/1", 1),
		"a backslash":                strings.Replace(synchronization, "users/1", `users\/1`, 1),
		"an id that is too long":     strings.Replace(synchronization, "users/1", strings.Repeat("u", MaxID), 1),
		"more than a field may have": synchronization + `, x="` + strings.Repeat("x", maxSynchronization) + `"`,
	} {
		if s, err := ParseSynchronization(field); err == nil {
			t.Errorf("%s: taken as %+v", name, s)
		}
	}
}

// A value that the engine can read is bounded. Written again, it reads the same.
func FuzzCollectionSynchronization(f *testing.F) {
	f.Add(synchronization)
	f.Add(`digest="00",url="https://a.example/"`)
	f.Add(`a="",a=""`)
	f.Add(`,="`)
	f.Fuzz(func(t *testing.T, field string) {
		s, err := ParseSynchronization(field)
		if err != nil {
			return
		}
		if len(field) > maxSynchronization || s.Collection.Origin() == "" || s.URL.Origin() == "" {
			t.Fatalf("%q was taken as %+v", field, s)
		}
		if again, err := ParseSynchronization(s.String()); err != nil || again != s {
			t.Fatalf("%q reads %+v, and written again %+v, %v", field, s, again, err)
		}
	})
}
