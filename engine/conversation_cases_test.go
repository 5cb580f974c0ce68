package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	caseRow    = regexp.MustCompile(`(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$`)
	caseNumber = regexp.MustCompile(`^TestRows?(\d+)(?:And(\d+))?`)
)

// Each row of docs/conversations.md, Cases and their tests, names a test that has the row's number
// in its name. A row without tests says that its case needs custody of keys.
func TestEveryCaseOfEncryptedConversationsHasItsTest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/conversations.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := caseRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) != 31 {
		t.Fatalf("the page has %d cases, want 31", len(rows))
	}
	known := map[string]map[string]source{}
	for n, row := range rows {
		if row[1] != strconv.Itoa(n+1) {
			t.Errorf("case %s stands in the place of %d", row[1], n+1)
		}
		named := reference.FindAllStringSubmatch(row[2], -1)
		hasNumber := len(named) == 0
		if len(named) == 0 && !strings.Contains(row[2], "needs custody") {
			t.Errorf("case %s: no test shows it", row[1])
		}
		for _, m := range named {
			if rows := caseNumber.FindStringSubmatch(m[2]); rows != nil && slices.Contains(rows[1:], row[1]) {
				hasNumber = true
			}
			if known[m[1]] == nil {
				known[m[1]] = testsOf(t, filepath.Join("..", m[1]))
			}
			if _, there := known[m[1]][m[2]]; !there {
				t.Errorf("case %s: there is no %s in %s", row[1], m[2], m[1])
			}
		}
		if !hasNumber {
			t.Errorf("case %s: no test has its number", row[1])
		}
	}
}
