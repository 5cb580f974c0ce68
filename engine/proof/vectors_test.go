package proof

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"
)

// The scenarios of FEP-8b32 pass. If their file is missing, the test is skipped.
func TestPublishedProofs(t *testing.T) {
	root := "../../../shared/vectors"
	if dir := os.Getenv("LIGHTWEB_VECTORS"); dir != "" {
		root = dir
	}
	file := filepath.Join(root, "fep-8b32", "fep-8b32.feature")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the scenarios of FEP-8b32 are not at %s; LIGHTWEB_VECTORS says where vectors are", file)
	}
	documents := strings.Split(string(raw), `"""`)
	quoted := func(after string) string {
		_, rest, _ := strings.Cut(string(raw), after+` "`)
		s, _, _ := strings.Cut(rest, `"`)
		return s
	}
	seed, err := base58.Decode(strings.TrimPrefix(quoted("secret key"), "z"))
	if err != nil || len(seed) != 2+ed25519.SeedSize || len(documents) != 9 {
		t.Fatalf("the scenarios are not as they were: %d parts, key %x, %v", len(documents), seed, err)
	}
	at, err := time.Parse(time.RFC3339, quoted("current time"))
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(seed[2:])
	want := read(t, documents[3])
	got, err := Sign(read(t, documents[1]), "https://server.example/users/alice#ed25519-key", key, at)
	if err != nil || !bytes.Equal(got.JSON(), want.JSON()) {
		t.Errorf("FE-06: signed it is\n%s, %v; want\n%s", got.JSON(), err, want.JSON())
	}
	actor := read(t, documents[7])
	public, err := base58.Decode(actor.Sub("assertionMethod").Text("publicKeyMultibase")[1:])
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(read(t, documents[5]), at)
	if err != nil || p == nil {
		t.Fatalf("Parse = %v, %v", p, err)
	}
	if err := p.Verify(public[2:]); err != nil {
		t.Errorf("FE-06: %v", err)
	}
}
