package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lightweb/lightweb"

// floors gives the order of the packages. A package may import only packages on lower floors.
// docs/decisions/0002-floors-and-doors.md decides the order, and docs/architecture.md shows it.
// Every package must be in this table. A package may be in it before it exists.
var floors = map[string]int{
	".":   14,
	"cmd": 13,

	"engine/bench": 12,

	"engine":     11,
	"db/measure": 11, // only engine/bench may import it

	"engine/server": 10,

	"engine/admin":   9,
	"engine/explain": 9,

	"engine/instance": 8,
	"engine/search":   8,

	"engine/inbox":  7,
	"engine/outbox": 7,
	"engine/thread": 7,

	"engine/handler": 6,
	"engine/socket":  6,

	"engine/event/consumer": 6,

	"engine/actor":        5,
	"engine/event":        5,
	"engine/feed":         5,
	"engine/delivery":     5,
	"engine/relay":        5,
	"engine/profile":      5,
	"engine/deletion":     5,
	"engine/wish":         5,
	"engine/conversation": 5,
	"engine/intake":       5,
	"db/dump":             5,

	"engine/transport": 4,
	"engine/cache":     4,
	"db":               4,

	"engine/foreign":     3,
	"engine/oidc":        3,
	"engine/mls/mlstest": 3,

	"db/user":     3,
	"db/instance": 3,

	"db/pool":                  2,
	"db/schema":                2,
	"db/embedded":              2,
	"engine/keyspace":          2,
	"engine/keyspace/embedded": 2,
	"engine/signature":         2,
	"engine/proof":             2,
	"engine/audience":          2,
	"engine/token":             2,
	"engine/policy":            2,
	"engine/pipeline":          2,
	"engine/registry":          2,
	"engine/archive":           2,
	"engine/mls":               2,
	"engine/page":              2,

	"engine/vocab":   1,
	"engine/picture": 1,
	"engine/mailbox": 1,
	"engine/holding": 1,
	"engine/daemon":  1,
	"db/postgres":    1,

	"docs/examples/client": 0,
	"engine/fault":         0,
	"migrations":           0,
}

// testOnly lists the packages that serve tests. They have no floor and may import any package.
// Only test files and packages of testOnly may import them.
var testOnly = map[string]bool{"db/dbtest": true, "engine/enginetest": true, "engine/enginetest/peertest": true,
	"engine/enginetest/dnstest": true, "engine/enginetest/browsertest": true, "engine/enginetest/keytest": true, "engine/oidc/oidctest": true, "engine/keyspace/redistest": true, "engine/audience/audiencetest": true, "engine/server/apitest": true, "cmd/mutate": true}

// Two doors are not packages. The door anywhere admits every package. The door inTests admits only
// test files and the packages of testOnly.
const (
	anywhere = "anywhere"
	inTests  = "tests"
)

// doors names, for each dependency, the one package that may import it. So the dependency can be
// replaced or distrusted in one place. A name that ends with "/..." stands for a tree of
// packages. A dependency that is not in this table may not be imported: adding one needs a
// decision record.
var doors = map[string]string{
	"github.com/jackc/pgx":                "db/...",
	"github.com/golang-migrate/migrate":   "db/...",
	"github.com/redis/go-redis":           "engine/keyspace",
	"github.com/alicebob/miniredis":       "engine/keyspace/embedded",
	"github.com/julienschmidt/httprouter": "engine/server",
	"github.com/coder/websocket":          "engine/server",
	"github.com/go-fed/httpsig":           "engine/signature",
	"github.com/dunglas/httpsfv":          "engine/signature",
	"github.com/go-json-experiment/json":  "engine/vocab",
	"github.com/microcosm-cc/bluemonday":  "engine/vocab",
	"golang.org/x/image":                  "engine/picture",
	"code.dny.dev/ssrf":                   "engine/transport",
	"github.com/coreos/go-oidc":           "engine/oidc",
	"golang.org/x/oauth2":                 "engine/oidc",
	"github.com/spf13":                    "cmd", // cobra and pflag, which it needs
	"github.com/charmbracelet/lipgloss":   "cmd",
	"github.com/muesli/termenv":           "cmd", // for the colour profiles of lipgloss
	// wraps the lines of the benchmarks page
	"github.com/charmbracelet/x/ansi": "engine/bench",
	"github.com/schollz/progressbar":  "cmd",
	"github.com/BurntSushi/toml":      "cmd",
	"golang.org/x/term":               "cmd",

	"github.com/prometheus":           anywhere,
	"github.com/google/uuid":          anywhere,
	"github.com/mr-tron/base58":       anywhere,
	"golang.org/x/crypto":             anywhere,
	"golang.org/x/net":                anywhere,
	"golang.org/x/sync":               anywhere,
	"golang.org/x/sys":                anywhere,
	"golang.org/x/text":               anywhere,
	"golang.org/x/time":               anywhere,
	"github.com/google/go-cmp":        inTests,
	"github.com/rogpeppe/go-internal": inTests,
	"github.com/go-jose/go-jose":      inTests,
	"go.uber.org/goleak":              inTests,
	"pgregory.net/rapid":              inTests,
}

// mayHoldClient lists the packages whose production code may use net/http's client. transport is
// the door to other servers, oidc gives transport's client to its library, and cmd asks this
// engine about its health.
var mayHoldClient = map[string]bool{"engine/transport": true, "engine/oidc": true, "cmd": true}

// goPackage has the fields of `go list -json` that this test reads.
type goPackage struct {
	ImportPath, Dir                    string
	GoFiles, IgnoredGoFiles            []string
	Imports, TestImports, XTestImports []string
}

func TestEveryPackageKeepsToItsFloorAndDoors(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	for _, v := range breaches(packages) {
		t.Error(v)
	}
	for _, p := range packages {
		if name := relative(p.ImportPath); mayHoldClient[name] || testOnly[name] {
			continue
		}
		for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles) {
			path := filepath.Join(p.Dir, file)
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range clientUses(t, path, src) {
				t.Errorf("%s: only engine/transport speaks to other servers", use)
			}
		}
	}
}

func TestArchitecturePageShowsTheFloors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\|").FindAllSubmatch(page, -1) {
		floor, err := strconv.Atoi(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		name := string(row[2])
		if name == "main.go" {
			name = "."
		}
		shown[name] = floor
	}
	if !maps.Equal(shown, floors) {
		t.Errorf("docs/architecture.md shows the floors\n%v\nwant\n%v", shown, floors)
	}
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports", "./...")
	list.Dir = ".."
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", list, err, &stderr)
	}
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
		// The test cache does not know the files that the go command reads. This test
		// reads them, so that a change makes a cached result stale.
		if _, err := os.ReadDir(p.Dir); err != nil {
			t.Fatal(err)
		}
	}
}

// breaches returns a sentence for each import that breaks a rule of floors, testOnly or doors.
func breaches(packages []goPackage) []string {
	var found []string
	for _, p := range packages {
		from := relative(p.ImportPath)
		if _, ok := floors[from]; !ok && !testOnly[from] {
			found = append(found, from+" has no floor")
			continue
		}
		for _, to := range p.Imports {
			if why := breach(from, to, false); why != "" {
				found = append(found, why)
			}
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			if why := breach(from, to, true); why != "" {
				found = append(found, why+" in a test")
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// breach says why a package of this module may not import another path. If it may, breach returns
// "". Test files obey the floors of their package, but may also import the packages of testOnly.
func breach(from, to string, inTestFile bool) string {
	if to != module && !strings.HasPrefix(to, module+"/") {
		return doorBreach(from, to, inTestFile || testOnly[from])
	}
	name := relative(to)
	if testOnly[name] {
		if inTestFile || testOnly[from] {
			return ""
		}
		return fmt.Sprintf("%s imports %s, which is for tests", from, name)
	}
	if from == "cmd" && (name == "db" || strings.HasPrefix(name, "db/")) {
		return fmt.Sprintf("cmd imports %s: call engine/admin", name)
	}
	upper, ok := floors[from]
	lower, known := floors[name]
	switch {
	case name == from || !ok || !known: // the package's own external tests, or a package without a floor, which another check reports
		return ""
	case lower >= upper:
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d)", from, upper, name, lower)
	}
	return ""
}

func doorBreach(from, to string, testing bool) string {
	first, _, _ := strings.Cut(to, "/")
	if !strings.Contains(first, ".") {
		return "" // a package of the standard library
	}
	for dependency, door := range doors {
		if to != dependency && !strings.HasPrefix(to, dependency+"/") {
			continue
		}
		switch {
		case door == anywhere, door == inTests && testing, isBehind(door, from):
			return ""
		}
		return fmt.Sprintf("%s imports %s, whose door is %s", from, to, door)
	}
	return fmt.Sprintf("%s imports %s, which has no door", from, to)
}

// isBehind reports whether a door names the package or a tree that contains it.
func isBehind(door, name string) bool {
	tree, isTree := strings.CutSuffix(door, "/...")
	return name == tree || isTree && strings.HasPrefix(name, tree+"/")
}

func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// clientUses returns "file:line: http.Name" for each use of net/http's client in a source file.
func clientUses(t *testing.T, path string, src []byte) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	local := ""
	for _, imported := range file.Imports {
		if imported.Path.Value == `"net/http"` {
			local = "http"
			if imported.Name != nil {
				local = imported.Name.Name
			}
		}
	}
	client := []string{"Client", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Transport"}
	var uses []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name, ok := selector.X.(*ast.Ident)
		if ok && local != "" && name.Name == local && slices.Contains(client, selector.Sel.Name) {
			uses = append(uses, fmt.Sprintf("%s: http.%s", files.Position(selector.Pos()), selector.Sel.Name))
		}
		return true
	})
	return uses
}
