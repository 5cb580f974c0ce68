package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// source is one Go file.
type source struct {
	path string // relative to the module, with slashes
	text string
	set  *token.FileSet
	file *ast.File
}

// pkg is one package of the module.
type pkg struct {
	name    string // its folder relative to the module, with slashes
	sources []source
	tests   []source
}

// mutant is one mistake at one place: the text between two offsets of a file is replaced.
type mutant struct {
	Package  string `json:"package"`
	Operator string `json:"operator"`
	Place    string `json:"place"`              // file:line:column
	Function string `json:"function,omitempty"` // the enclosing function, constant or variable
	From     string `json:"from"`
	To       string `json:"to"`

	path       string
	start, end int
}

func packageOf(place string) string {
	file, _, _ := strings.Cut(place, ":")
	return path.Dir(file)
}

// readPackage reads the files of a package that are compiled on this system. It skips generated
// files, because their tests are the tests of the generator.
func readPackage(root, name string) (*pkg, error) {
	found, err := build.ImportDir(filepath.Join(root, filepath.FromSlash(name)), 0)
	if err != nil {
		return nil, fmt.Errorf("read package %s: %w", name, err)
	}
	p := &pkg{name: name}
	read := func(files []string, into *[]source) error {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(found.Dir, file))
			if err != nil {
				return fmt.Errorf("read package %s: %w", name, err)
			}
			s, err := parseSource(path.Join(name, file), string(text))
			if err != nil {
				return err
			}
			if !ast.IsGenerated(s.file) {
				*into = append(*into, s)
			}
		}
		return nil
	}
	for _, err := range []error{read(found.GoFiles, &p.sources), read(found.TestGoFiles, &p.tests), read(found.XTestGoFiles, &p.tests)} {
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parseSource(path, text string) (source, error) {
	s := source{path: path, text: text, set: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.set, path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		return s, fmt.Errorf("parse %s: %w", path, err)
	}
	return s, nil
}

// mutants returns every mutant that the operators find, file by file, in the order of the text.
func (p *pkg) mutants() []mutant {
	var all []mutant
	for _, s := range p.sources {
		for _, d := range s.file.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				for _, o := range operators {
					for _, e := range o.edits(s, n) {
						all = append(all, p.mutant(s, declared(d, n), o.name, e))
					}
				}
				return true
			})
		}
	}
	return all
}

func (p *pkg) mutant(s source, function, operator string, e edit) mutant {
	file := s.set.File(s.file.Pos())
	at := file.Position(file.Pos(e.start))
	return mutant{Package: p.name, Operator: operator, Place: fmt.Sprintf("%s:%d:%d", s.path, at.Line, at.Column),
		Function: function, From: s.text[e.start:e.end], To: e.text, path: s.path, start: e.start, end: e.end}
}

// declared returns the name that a declaration declares. If it declares several names, declared
// returns the one whose declaration contains n.
func declared(d ast.Decl, n ast.Node) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && v.Pos() <= n.Pos() && n.Pos() < v.End() {
				return v.Names[0].Name
			}
		}
	}
	return ""
}

// applyMutant returns the text of the mutant's file with the mistake in it.
func (p *pkg) applyMutant(m mutant) string {
	for _, s := range p.sources {
		if s.path == m.path {
			return s.text[:m.start] + m.To + s.text[m.end:]
		}
	}
	panic("mutate: " + m.path + " is no file of " + p.name)
}

// nearbyTests returns the tests that probably reach the mutant: those in the test file of the
// same name, those whose own name contains the file's name, and those that mention the mutant's
// function. If these tests run first, most mutants are killed soon.
func (p *pkg) nearbyTests(m mutant) []string {
	mention := regexp.MustCompile(`\b` + regexp.QuoteMeta(m.Function) + `\b`)
	file := strings.TrimSuffix(m.path, ".go")
	namesake, topic := file+"_test.go", strings.ReplaceAll(path.Base(file), "_", "")
	var names []string
	for _, s := range p.tests {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			named := strings.Contains(strings.ToLower(f.Name.Name), topic)
			if s.path == namesake || named || m.Function != "" && mention.MatchString(s.of(f)) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// of returns the source text of n.
func (s source) of(n ast.Node) string { return s.text[s.offset(n.Pos()):s.offset(n.End())] }

func (s source) offset(p token.Pos) int { return s.set.Position(p).Offset }
