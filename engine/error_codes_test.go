package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// otherSide are the codes that only other servers and operators are told.
var otherSide = []string{"unsigned", "not_ready", "plain_text", "bad_encoding", "too_long"}

// A program goes by the codes: each that the client API answers with stands on its page.
func TestTheAPIPageNamesEveryErrorCode(t *testing.T) {
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile(`(?:WithCode\(|http\.Status\w+, )"([a-z_]+)"`) // of a refusal, and of its status
	found := 0
	for _, path := range sources(t) {
		if !slices.Contains([]string{"outbox", "server", "feed", "thread", "search", "picture", "conversation", "vocab"}, filepath.Dir(path)) {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range code.FindAllStringSubmatch(string(source), -1) {
			found++
			if !slices.Contains(otherSide, match[1]) && !strings.Contains(string(page), "`"+match[1]+"`") {
				t.Errorf("%s answers with %s, which docs/api.md does not name", path, match[1])
			}
		}
	}
	if found < 60 {
		t.Errorf("%d codes were found in the sources", found)
	}
}
