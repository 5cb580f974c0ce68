package engine_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// These tests check the rules of plain English that a program can check, in every Go file and page
// of the tree. docs/glossary.md lists the words.

const (
	proseColumns = 100 // the last column of a line of prose; a tab counts as four
	// the percentage of a package's functions that may have a name of one word
	oneWordShare = 40
)

// bannedIdentifiers holds exported names that may not occur, each with the word to use.
var bannedIdentifiers = map[string]string{
	"Chat":      "Conversation",
	"Exception": "Fault",
	"Helper":    "the noun that it helps with",
	"Lasting":   "the field's word for the state",
	"Manager":   "the noun that it manages",
	"Processor": "Handler",
	"Receiver":  "Recipient",
	"Room":      "Conversation",
	"Service":   "the noun that it serves",
	"Task":      "Job, Delivery or Attempt",
	"Tenant":    "User",
	"Unpark":    "Drain",
	"Util":      "the noun that it is about",
}

// offences holds the places that break a rule, by rule and then by package or page.
type offences map[string]map[string][]string

func (o offences) add(rule, where, place string) {
	if o[rule] == nil {
		o[rule] = map[string][]string{}
	}
	o[rule][where] = append(o[rule][where], place)
}

func TestPlainEnglish(t *testing.T) {
	t.Parallel()
	found := offences{}
	names := map[string]*nameCount{}
	for path, text := range proseFiles(t) {
		if dreaded.Match(text) {
			found.add("name the party", path, path)
		}
		if strings.HasSuffix(path, ".md") {
			checkPage(found, path, string(text))
			continue
		}
		checkGoFile(t, found, names, path, text)
	}
	for where, n := range names {
		if n.all >= 10 && 100*n.oneWord > oneWordShare*n.all {
			t.Errorf("%s: one word names %d of %d functions, may %d %%", where, n.oneWord, n.all, oneWordShare)
		}
	}
	for rule, places := range found {
		for where, list := range places {
			t.Errorf("%s: %s: %d places:\n\t%s", where, rule, len(list), strings.Join(list, "\n\t"))
		}
	}
}

// proseFiles returns the Go files and pages of the tree. The keys are their paths from the tree's
// root.
func proseFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md"):
			return nil
		}
		files[path], err = os.ReadFile(filepath.Join("..", path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var (
	dreaded     = regexp.MustCompile(`(?i)\bwho` + `m\b`)
	beginsBadly = regexp.MustCompile(`(^|[.!?:] )(What|Who|Who` + `m) `)
	saysBadly   = regexp.MustCompile(`^(?i:what|who) `)
	says        = regexp.MustCompile(`^(New|Wrap|Errorf|warn|(Debug|Info|Warn|Error)(Context)?)$`)
	mark        = regexp.MustCompile(`^(#+ |[-*] |\d+\. |> )?(\*\*|_)?`) // the marks of a heading, list or emphasis
	predicate   = regexp.MustCompile(`^([iI]s|[hH]as|[mM]ay|[cC]an)[A-Z]`)
)

// checkPage checks the lines of prose, headings and cells of a page. It skips code and the
// comments that mark generated parts. Cells may have any width.
func checkPage(found offences, path, text string) {
	code := false
	for n, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "<!--") {
			continue
		}
		place := fmt.Sprintf("%s:%d", path, n+1)
		if !strings.HasPrefix(line, "|") && isTooLong(line) {
			found.add("lines of prose end before column 100", path, place)
		}
		if strings.HasPrefix(path, "docs/decisions/") && !strings.HasPrefix(line, "#") {
			continue // decision records keep the words of their time
		}
		cells := strings.Split(strings.TrimLeft(line, "| "), "| ")
		if slices.ContainsFunc(cells, func(cell string) bool {
			return beginsBadly.MatchString(mark.ReplaceAllString(strings.TrimSpace(cell), "") + " ")
		}) {
			found.add("sentences do not begin with What or Who", path, place)
		}
	}
}

// isTooLong reports whether a line of prose is too long and has a space where it could be broken.
func isTooLong(line string) bool {
	line = strings.ReplaceAll(line, "\t", "    ")
	if utf8.RuneCountInString(line) <= proseColumns {
		return false
	}
	head := string([]rune(line)[:proseColumns+1])
	begin := len(line) - len(strings.TrimLeft(line, " /-*0123456789."))
	return strings.LastIndex(head, " ") > begin
}

// checkGoFile checks the comments of a file and the names that it declares.
func checkGoFile(t *testing.T, found offences, names map[string]*nameCount, path string, text []byte) {
	t.Helper()
	where, files := filepath.Dir(path), token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(text, []byte("\n"))
	for _, group := range f.Comments {
		for _, c := range group.List {
			at := files.Position(c.Pos())
			line := string(lines[at.Line-1])
			if isProse(line) && isTooLong(line) {
				found.add("lines of prose end before column 100", where, at.String())
			}
		}
		if beginsBadly.MatchString(strings.Join(strings.Fields(group.Text()), " ")) {
			found.add("sentences do not begin with What or Who", where, files.Position(group.Pos()).String())
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if !strings.HasSuffix(path, "_test.go") && saysBadly.MatchString(saidBy(n)) {
			found.add("errors and log lines do not begin with What or Who", where, files.Position(n.Pos()).String())
		}
		return true
	})
	for _, d := range f.Decls {
		checkNames(found, where, files.Position(d.Pos()).String(), d)
		if fn, ok := d.(*ast.FuncDecl); ok && !strings.HasSuffix(path, "_test.go") {
			if names[where] == nil {
				names[where] = &nameCount{}
			}
			names[where].count(fn)
		}
	}
}

// saidBy returns the literal text of the error or log line that n makes. If n makes neither, it
// returns "".
func saidBy(n ast.Node) string {
	call, _ := n.(*ast.CallExpr)
	if call == nil {
		return ""
	}
	if of, is := call.Fun.(*ast.SelectorExpr); !is || !says.MatchString(of.Sel.Name) {
		return ""
	}
	for _, arg := range call.Args {
		if l, is := arg.(*ast.BasicLit); is && l.Kind == token.STRING {
			return strings.Trim(l.Value, "\"`")
		}
	}
	return ""
}

// isProse reports whether a line is a comment of prose. Code in a comment and directives are not
// prose.
func isProse(line string) bool {
	text, is := strings.CutPrefix(strings.TrimSpace(line), "// ")
	return is && !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t")
}

// checkNames finds exported names that are banned. It also finds predicates that do not return a
// bool or that assign to their receiver.
func checkNames(found offences, where, place string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if use := bannedIdentifiers[d.Name.Name]; use != "" {
			found.add("words of the glossary", where, place+" "+d.Name.Name+": say "+use)
		}
		if predicate.MatchString(d.Name.Name) && (!returnsBool(d) || assignsToReceiver(d)) {
			found.add("predicates return a bool and change nothing", where, place+" "+d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if s, is := s.(*ast.TypeSpec); is && bannedIdentifiers[s.Name.Name] != "" {
				found.add("words of the glossary", where, place+" "+s.Name.Name+": say "+bannedIdentifiers[s.Name.Name])
			}
		}
	}
}

// returnsBool reports whether fn returns a bool, alone or with an error.
func returnsBool(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil {
		return false
	}
	return slices.ContainsFunc(fn.Type.Results.List, func(r *ast.Field) bool {
		id, is := r.Type.(*ast.Ident)
		return is && id.Name == "bool"
	})
}

// assignsToReceiver reports whether fn assigns to a field of its receiver.
func assignsToReceiver(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 || fn.Body == nil {
		return false
	}
	receiver, assigns := fn.Recv.List[0].Names[0].Name, false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		var left []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			left = n.Lhs
		case *ast.IncDecStmt:
			left = []ast.Expr{n.X}
		}
		for _, x := range left {
			field, is := x.(*ast.SelectorExpr)
			if !is {
				continue
			}
			if id, is := field.X.(*ast.Ident); is && id.Name == receiver {
				assigns = true
			}
		}
		return true
	})
	return assigns
}

// nameCount counts the functions of a package, and those of them with a name of one word.
type nameCount struct{ all, oneWord int }

// count counts fn. It does not count exported functions and methods as names of one word, because
// their callers write the noun before the name, as in signature.Verify and resolver.Resolve. It
// skips main and init, which Go names. It counts every other name of one word.
func (n *nameCount) count(fn *ast.FuncDecl) {
	name := fn.Name.Name
	if name == "main" || name == "init" {
		return
	}
	n.all++
	if isOneWord(name) && !fn.Name.IsExported() {
		n.oneWord++
	}
}

// isOneWord reports whether name is a single word, such as save or ID.
func isOneWord(name string) bool {
	r := []rune(name)
	for i := 1; i < len(r); i++ {
		begins := unicode.IsUpper(r[i]) && unicode.IsLower(r[i-1])
		ends := unicode.IsUpper(r[i-1]) && unicode.IsUpper(r[i]) && i+1 < len(r) && unicode.IsLower(r[i+1])
		if begins || ends {
			return false
		}
	}
	return true
}

func TestNamesAreCountedInWords(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"save": true, "ID": true, "URL": true, "saveHost": false, "URLOf": false, "hostURL": false} {
		if got := isOneWord(name); got != want {
			t.Errorf("isOneWord(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestLinesThatCannotBeBrokenAreNotTooLong(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		strings.Repeat("word ", 20):                 false,
		strings.Repeat("word ", 20) + "word":        true,
		"- " + strings.Repeat("x", 120):             false,
		"\t// " + strings.Repeat("word ", 19) + "w": true,
	} {
		if got := isTooLong(line); got != want {
			t.Errorf("isTooLong(%q) = %v, want %v", line, got, want)
		}
	}
}
