package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// otherSide lists the codes that only other servers and operators see.
var otherSide = []string{"unsigned", "not_ready", "plain_text", "bad_encoding", "too_long"}

// Programs act on the error codes, so docs/api.md names each code that the client API answers
// with.
func TestTheAPIPageNamesEveryErrorCode(t *testing.T) {
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	isNamed := func(code string) bool {
		return slices.Contains(otherSide, code) || strings.Contains(string(page), "`"+code+"`")
	}
	for _, k := range fault.Kinds() {
		if code := fault.Code(fault.New(k, "")); !isNamed(code) {
			t.Errorf("a fault of kind %d has the code %s, which docs/api.md does not name", k, code)
		}
	}
	code := regexp.MustCompile(`(?:WithCode\(|unprocessable\(|conflictWith\(\w+, )"([a-z_]+)"`)
	found := 0
	for _, path := range append(sources(t), "../db/postgres/fault.go") {
		if !slices.Contains([]string{"outbox", "server", "feed", "thread", "search", "picture", "conversation", "vocab", "socket", "../db/postgres"}, filepath.Dir(path)) {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range code.FindAllStringSubmatch(string(source), -1) {
			found++
			if !isNamed(match[1]) {
				t.Errorf("%s answers with %s, which docs/api.md does not name", path, match[1])
			}
		}
	}
	if found < 60 {
		t.Errorf("%d codes were found in the sources", found)
	}
}
