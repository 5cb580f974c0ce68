package explain

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// A refused request gets a code. Each of these codes has a hint for the operator.
func TestEveryRefusalOfASignatureHasAHint(t *testing.T) {
	t.Parallel()
	codes := map[string]bool{}
	for dir, call := range map[string]string{"signature": "refuse", "actor": "refuseUnproven"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal("no source", err)
		}
		before := len(codes)
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range regexp.MustCompile(call+`\("([a-z_0-9]+)", "`).FindAllSubmatch(source, -1) {
				codes[string(found[1])] = true
			}
		}
		if len(codes) == before {
			t.Errorf("no call of %s in %s has a code that is new", call, dir)
		}
	}
	for _, none := range []string{"bad_", "malformed_"} { // only beginnings: in the code, the name of a field follows
		delete(codes, none)
	}
	for _, more := range []string{"bad_created", "bad_expires", "malformed_signature_input", "malformed_content_digest", "malformed_signature"} {
		codes[more] = true
	}
	if len(codes) < 40 {
		t.Errorf("found %d codes, want all of them", len(codes))
	}
	for code := range codes {
		x := explainer{SignedRequest: SignedRequest{Request: &http.Request{Host: "example.org"}, Origin: "https://example.org"}}
		x.out.Code, x.out.Signatures = code, []CheckedSignature{{KeyID: "https://peer.example/users/bob#main-key"}}
		x.out.Actor = vocab.ID("https://peer.example/users/bob")
		if x.hint() == "" {
			t.Errorf("there is no hint for %s", code)
		}
	}
	for code := range hints {
		if strings.TrimSpace(hints[code]) == "" {
			t.Errorf("the hint for %s says nothing", code)
		}
	}
}
