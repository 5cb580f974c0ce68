package socket

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Programs act on the codes with which sockets end. docs/api.md has a row for each code, and no
// other row.
func TestTheAPIPageHasEveryClosing(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, isFound := strings.Cut(string(page), "| code | reason | the program |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !isFound {
		t.Fatal("docs/api.md has no table of closings")
	}
	var rows, known []string
	for line := range strings.Lines(table) {
		cell := strings.Split(line, "|")[1]
		rows = append(rows, regexp.MustCompile(`\d{4}`).FindAllString(cell, -1)...)
	}
	for _, c := range closings {
		known = append(known, strconv.Itoa(c.Code))
	}
	slices.Sort(rows)
	slices.Sort(known)
	if known = slices.Compact(known); !slices.Equal(rows, known) {
		t.Errorf("docs/api.md has the codes %s, want %s", rows, known)
	}
}
