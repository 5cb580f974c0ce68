package engine_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requirements are the ids of docs/conformance.md in their order. The numbers of each form go from
// 1 to last.
var requirements = []struct {
	form string
	last int
}{
	{"D%d", 18}, {"WF-%02d", 15}, {"NI-%02d", 6}, {"OB-%02d", 12}, {"AC-%02d", 10}, {"CO-%02d", 11},
	{"DL-%02d", 18}, {"IN-%02d", 23}, {"AS-%02d", 19}, {"SG-%02d", 22}, {"MS-%02d", 14}, {"FE-%02d", 25},
}

// requirement is a row of docs/conformance.md.
type requirement struct{ id, what, status, shown string }

var requirementRow = regexp.MustCompile(`(?m)^\| ([A-Z]+-?\d+) \| [^|]+ \| ([^|]+) \| [^|]* \| ([^|]+) \| ([^|]+) \|$`)

func conformancePage(t *testing.T) (string, []requirement) {
	t.Helper()
	page, err := os.ReadFile("../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []requirement
	for _, m := range requirementRow.FindAllStringSubmatch(string(page), -1) {
		rows = append(rows, requirement{m[1], m[2], m[3], m[4]})
	}
	return string(page), rows
}

func TestEveryRequirementStandsOnTheConformancePage(t *testing.T) {
	t.Parallel()
	page, rows := conformancePage(t)
	var want, got []string
	for _, r := range requirements {
		for n := range r.last {
			want = append(want, fmt.Sprintf(r.form, n+1))
		}
	}
	counts := map[string]int{}
	for _, r := range rows {
		got = append(got, r.id)
		counts[r.status]++
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has the rows\n%v\nwant\n%v", got, want)
	}
	if sum := fmt.Sprintf("Yes %d, Partial %d, No %d.", counts["Yes"], counts["Partial"], counts["No"]); !strings.Contains(page, sum) || counts["Yes"]+counts["Partial"]+counts["No"] != len(rows) {
		t.Errorf("the page does not say %q", sum)
	}
}

// reference matches the name of a test on the page: its package, its name and, after a slash, the
// name of one of its rows.
var reference = regexp.MustCompile("`([a-z][a-z/]*)\\.((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([^`]+))?`")

// Every test that docs/conformance.md names exists. Each claim names a test, and each row without
// a claim gives a reason.
func TestTheTestsOfTheConformancePageExist(t *testing.T) {
	t.Parallel()
	_, rows := conformancePage(t)
	known := map[string]map[string]source{}
	for _, r := range rows {
		all := reference.FindAllStringSubmatch(r.shown, -1)
		for _, m := range all {
			if known[m[1]] == nil {
				known[m[1]] = testsOf(t, filepath.Join("..", m[1]))
			}
			s, there := known[m[1]][m[2]]
			switch {
			case !there:
				t.Errorf("%s: there is no %s in %s", r.id, m[2], m[1])
			case m[3] != "" && !s.hasRow(m[3]):
				t.Errorf("%s: %s.%s has no row that is called by %s", r.id, m[1], m[2], m[3])
			}
		}
		reason := strings.Trim(reference.ReplaceAllString(r.shown, ""), " ,;().")
		switch {
		case r.status == "Yes" && len(all) == 0:
			t.Errorf("%s: no test shows it", r.id)
		case r.status != "Yes" && reason == "":
			t.Errorf("%s: %s, and it does not say why", r.id, r.status)
		}
	}
}

// source describes a test that a page can name: whether the test has rows, and the texts that may
// name a row.
type source struct {
	rows  bool
	texts []string
}

func (s source) hasRow(name string) bool {
	word := regexp.MustCompile(`(^|[^A-Z0-9-])` + regexp.QuoteMeta(name) + `($|[^0-9a-z])`)
	return s.rows && slices.ContainsFunc(s.texts, word.MatchString)
}

// testsOf reads the tests of a package. A test has rows if it calls t.Run or a helper named play.
// The rows are in the test itself, or in a table outside of any function.
func testsOf(t *testing.T, dir string) map[string]source {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]source{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var tables []string
		for _, d := range file.Decls {
			if table, ok := d.(*ast.GenDecl); ok {
				tables = append(tables, textsIn(table)...)
			}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = source{calls(f, "Run") || calls(f, "play"), slices.Concat(textsIn(f), tables)}
			}
		}
	}
	return tests
}

func textsIn(n ast.Node) (texts []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

// calls reports whether f calls a function with the given name.
func calls(f *ast.FuncDecl, name string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fun := call.Fun.(type) {
		case *ast.Ident:
			found = found || fun.Name == name
		case *ast.SelectorExpr:
			found = found || fun.Sel.Name == name
		}
		return true
	})
	return found
}

// FE-01: FEDERATION.md is the summary of docs/conformance.md. Both say the same of every FEP that
// both name.
func TestTheFederationPageSaysTheSame(t *testing.T) {
	t.Parallel()
	summary, err := os.ReadFile("../FEDERATION.md")
	if err != nil {
		t.Fatal(err)
	}
	proposal := regexp.MustCompile(`FEP-([0-9a-f]{4})\b`)
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| \[FEP-([0-9a-f]{4})\][^|]+ \| ([^|]+) \|[^|]*\|$`).FindAllStringSubmatch(string(summary), -1) {
		said[m[1]] = m[2]
	}
	if len(said) < 10 {
		t.Fatalf("FEDERATION.md names the FEPs %v, want its table", said)
	}
	_, rows := conformancePage(t)
	both := 0
	for _, r := range rows {
		m := proposal.FindStringSubmatch(r.what)
		if !strings.HasPrefix(r.id, "FE-") || m == nil || said[m[1]] == "" {
			continue
		}
		both++
		if said[m[1]] != r.status {
			t.Errorf("%s: %s of FEP-%s, and FEDERATION.md says %s", r.id, r.status, m[1], said[m[1]])
		}
	}
	if both < 10 {
		t.Errorf("the two pages share %d FEPs, want most of them", both)
	}
	for _, heading := range []string{"## Supported federation protocols and standards", "## Supported FEPs", "## Additional documentation"} { // FEP-67ff requires these headings
		if !strings.Contains(string(summary), heading) {
			t.Errorf("FEDERATION.md has no %q", heading)
		}
	}
}
