package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Everything that depends on the type of an activity belongs to the handlers. Other packages name
// a type only by its constant, and only where they build or look for one activity. They do not
// list two types together.
var (
	typeRooms = []string{"engine/handler/", "engine/vocab/types.go", "engine/bench/", "engine/enginetest/", "engine/audience/audiencetest/",
		"db/dbtest/", "cmd/mutate/"}
	typeNames = []string{vocab.Accept, vocab.Add, vocab.Announce, vocab.Block, vocab.Create, vocab.Delete, vocab.Dislike, vocab.EmojiReact, vocab.Flag,
		vocab.Follow, vocab.Like, vocab.Move, vocab.Offer, vocab.QuoteRequest, vocab.Reject, vocab.Remove, vocab.Undo, vocab.Update}
	typeInSQL = regexp.MustCompile(`'(` + strings.Join(typeNames, "|") + `)'`)
)

// namedTypes lists the exceptions with the reason: places that name a type as text, or two types
// together.
var namedTypes = map[string]string{
	"engine/server/negotiate.go Accept":       "the field of a request",
	"engine/server/discovery.go Accept":       "the field of a request",
	"engine/transport/get.go Accept":          "the field of a request",
	"engine/transport/ask.go Accept":          "the field of a request",
	"engine/signature/cavage.go Accept":       "the field of a request",
	"engine/outbox/vocabulary.go Follow":      "an action",
	"engine/outbox/vocabulary.go Like":        "an action",
	"engine/outbox/vocabulary.go Dislike":     "an action",
	"engine/outbox/vocabulary.go Block":       "an action",
	"engine/conversation/manifest.go Like":    "an action",
	"engine/conversation/manifest.go Dislike": "an action",
	"engine/demo.go Follow":                   "an action",
	"engine/demo.go Like":                     "an action",
	"engine/relay/relay.go Accept, Reject":    "the two answers that FEP-ae0c has",
}

func TestOneRoomKnowsWhatATypeIs(t *testing.T) {
	expectOneRoom(t, typeRooms, typesIn, namedTypes, "%s names %s: the handlers say what a type is")
}

// typesIn returns the position of each type that a file names as text. It also returns the
// position of each group of types that the file names in one list, in the cases of one switch, or
// in the terms of one condition.
func typesIn(f *ast.File) map[string]token.Pos {
	in := map[string]token.Pos{}
	together := func(parts []ast.Expr) {
		var names []string
		for _, e := range parts {
			if s, ok := e.(*ast.SelectorExpr); ok && slices.Contains(typeNames, s.Sel.Name) {
				if p, ok := s.X.(*ast.Ident); ok && p.Name == "vocab" {
					names = append(names, s.Sel.Name)
				}
			}
		}
		if slices.Sort(names); len(names) > 1 {
			in[strings.Join(names, ", ")] = parts[0].Pos()
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				return true
			}
			if slices.Contains(typeNames, text) {
				in[text] = n.Pos()
			}
			if m := typeInSQL.FindStringSubmatch(text); m != nil {
				in[m[1]] = n.Pos()
			}
		case *ast.CompositeLit:
			together(n.Elts)
		case *ast.CallExpr:
			together(n.Args)
		case *ast.SwitchStmt:
			var cases []ast.Expr
			for _, c := range n.Body.List {
				cases = append(cases, c.(*ast.CaseClause).List...)
			}
			together(cases)
		case *ast.BinaryExpr:
			together(terms(n))
			return n.Op != token.LOR && n.Op != token.LAND
		}
		return true
	})
	return in
}

// terms returns the operands of the comparisons in one condition.
func terms(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return terms(e.X)
	case *ast.UnaryExpr:
		return terms(e.X)
	case *ast.BinaryExpr:
		if e.Op == token.LOR || e.Op == token.LAND {
			return append(terms(e.X), terms(e.Y)...)
		}
		return []ast.Expr{e.X, e.Y}
	}
	return nil
}

// mostMethods is how many methods a type may have. A type with more methods has several
// responsibilities.
const mostMethods = 40

func TestTypesHaveFewMethods(t *testing.T) {
	t.Parallel()
	for receiver, n := range countMethods(t, proseFiles(t)) {
		if n > mostMethods {
			t.Errorf("%s has %d methods, may have %d: split it by what they use", receiver, n, mostMethods)
		}
	}
}

// countMethods counts the methods of the types in Go files, by package and name. It does not count
// those in tests.
func countMethods(t *testing.T, files map[string][]byte) map[string]int {
	t.Helper()
	methods := map[string]int{}
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[path.Dir(name)+"."+receiverName(fn.Recv.List[0].Type)]++
			}
		}
	}
	return methods
}

// receiverName returns the name of a receiver's type, without pointer and type arguments.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.ParenExpr:
		return receiverName(e.X)
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	}
	return ""
}

func TestMethodsOfEveryKindOfReceiverAreCounted(t *testing.T) {
	t.Parallel()
	got := countMethods(t, map[string][]byte{
		"a/one.go":      []byte("package a\nfunc (T) One() {}\nfunc (t *T) Two() {}\nfunc (l *L[K]) One() {}\nfunc (m M[K, V]) One() {}\nfunc free() {}\n"),
		"a/two.go":      []byte("package a\nfunc (t *(T)) Three() {}\n"),
		"a/two_test.go": []byte("package a\nfunc (t *T) Four() {}\n"),
		"b/one.go":      []byte("package b\nfunc (t T) One() {}\n"),
		"a/page.md":     []byte("func (t T) Five() {}"),
	})
	if want := map[string]int{"a.T": 3, "a.L": 1, "a.M": 1, "b.T": 1}; !maps.Equal(got, want) {
		t.Errorf("countMethods = %v, want %v", got, want)
	}
}
