package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// expectTable checks that a page has a table. With -update it writes the table there. The parameter
// run is the name by which the page says that this test is run.
func expectTable(t *testing.T, path, name, run, table string) {
	t.Helper()
	begin, end := "<!-- "+name+": written by go test ./engine -run "+run+" -update -->\n", "<!-- end of "+name+" -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the %s", path, name)
	}
	want := before + begin + table + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s does not show the %s: run go test ./engine -run %s -update", path, name, run)
	}
}

// Every limiter and pool belongs to a row of the table of budgets, which gives it a payer and a
// test. Every row is used by a limiter or pool.
func TestEveryLimiterIsARowOfTheTable(t *testing.T) {
	rows := declaredBudgets(t)
	for _, path := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "policy" {
				if s.Sel.Name == "NewLimiter" || s.Sel.Name == "NewPool" {
					t.Errorf("%s calls policy.%s: make it from a row of the table in engine/policy/budgets.go", path, s.Sel.Name)
				}
				delete(rows, s.Sel.Name)
			}
			return true
		})
	}
	for name := range rows {
		t.Errorf("policy.%s is a row of the table, and nothing is made from it", name)
	}
}

// declaredBudgets returns the names of the rows that need a limiter or a pool. Rows that bound a
// single request need neither.
func declaredBudgets(t *testing.T) map[string]bool {
	file, err := parser.ParseFile(token.NewFileSet(), "policy/budgets.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		perRequest := false
		ast.Inspect(v, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "Request" {
				perRequest = true
			}
			return true
		})
		if !perRequest {
			rows[v.Names[0].Name] = true
		}
		return false
	})
	return rows
}

// sources returns the Go files of the engine, except tests, engine/policy and enginetest.
func sources(t *testing.T) (paths []string) {
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (path == "policy" || strings.HasPrefix(path, "enginetest")) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
