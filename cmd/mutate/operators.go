package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// edit puts text in the place of what stands between two offsets of a source.
type edit struct {
	start, end int
	text       string
}

// operator is one kind of mistake: the edits that make it at a node of a source, none where it does
// not apply.
type operator struct {
	name  string
	edits func(s source, n ast.Node) []edit
}

var operators = []operator{
	{"negated condition", negateCondition},
	{"dropped statement", dropStatement},
	{"shifted bound", shiftBound},
	{"removed SQL conjunct", removeConjunct},
	{"skipped policy call", skipPolicyCall},
}

func (s source) edit(n ast.Node, text string) []edit {
	return []edit{{start: s.offset(n.Pos()), end: s.offset(n.End()), text: text}}
}

// negateCondition turns the condition of an if around. That of `err != nil` alone is none: every
// test would notice.
func negateCondition(s source, n ast.Node) []edit {
	branch, ok := n.(*ast.IfStmt)
	if !ok || s.of(branch.Cond) == "err != nil" {
		return nil
	}
	return s.edit(branch.Cond, "!("+s.of(branch.Cond)+")")
}

// shiftBound moves a comparison by one.
func shiftBound(s source, n ast.Node) []edit {
	shifted := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	comparison, ok := n.(*ast.BinaryExpr)
	if !ok || shifted[comparison.Op] == "" {
		return nil
	}
	return s.edit(comparison, s.of(comparison.X)+" "+shifted[comparison.Op]+" "+s.of(comparison.Y))
}

// held are the calls whose loss a test sees by chance: what is held longer or shorter than it
// should be.
var held = regexp.MustCompile(`\b(Lock|Unlock|RLock|RUnlock|Close|Stop|Release|Wait|cancel|close)\(\)$`)

// logged is a log line.
var logged = regexp.MustCompile(`(?i)\blog(ger)?(\([^()]*\))?\.\w+\(`)

// dropStatement leaves out a statement of a block. Deferred ones, log lines, and what locks and
// releases stay.
func dropStatement(s source, n ast.Node) []edit {
	var statements []ast.Stmt
	switch n := n.(type) {
	case *ast.BlockStmt:
		statements = n.List
	case *ast.CaseClause:
		statements = n.Body
	case *ast.CommClause:
		statements = n.Body
	}
	var edits []edit
	for _, st := range statements {
		if s.mayDrop(st) {
			edits = append(edits, s.edit(st, "")...)
		}
	}
	return edits
}

func (s source) mayDrop(st ast.Stmt) bool {
	switch st := st.(type) {
	case *ast.ExprStmt:
		text := s.of(st)
		return !held.MatchString(text) && !logged.MatchString(text) && !strings.HasPrefix(text, "panic(")
	case *ast.AssignStmt:
		return st.Tok != token.DEFINE && s.of(st.Lhs[0]) != "_"
	case *ast.IncDecStmt, *ast.SendStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// asks are the names of calls that decide whether something may be done.
var asks = regexp.MustCompile(`^(?i:is|has|may|can|allow|check|verify|validate|limit|spend|block|refuse|authorize)(ed|s)?([A-Z].*)?$`)

// skipPolicyCall makes a guard let everything through: an if that asks a policy and does nothing
// but leave.
func skipPolicyCall(s source, n ast.Node) []edit {
	guard, ok := n.(*ast.IfStmt)
	if !ok || guard.Else != nil || !isLeaving(guard.Body) {
		return nil
	}
	found := false
	for _, part := range []ast.Node{guard.Init, guard.Cond} {
		if part == nil {
			continue
		}
		ast.Inspect(part, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			found = found || ok && s.isPolicy(call)
			return !found
		})
	}
	if !found {
		return nil
	}
	return s.edit(guard.Cond, "false && ("+s.of(guard.Cond)+")")
}

func isLeaving(b *ast.BlockStmt) bool {
	if len(b.List) != 1 {
		return false
	}
	switch b.List[0].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// isPolicy reports whether a call is to one of the packages that decide, or to a function of ours
// that asks.
func (s source) isPolicy(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return asks.MatchString(f.Name)
	case *ast.SelectorExpr:
		of := s.of(f.X)
		return of == "policy" || of == "audience" || asks.MatchString(f.Sel.Name) && !s.isStandard(of)
	}
	return false
}

// isStandard reports whether the source knows a package of the standard library by this name.
func (s source) isStandard(name string) bool {
	for _, i := range s.file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		first, _, _ := strings.Cut(path, "/")
		if err == nil && !strings.Contains(first, ".") && name == path[strings.LastIndex(path, "/")+1:] {
			return true
		}
	}
	return false
}
