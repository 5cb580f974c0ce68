package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// edit replaces the text between two offsets of a source by another text.
type edit struct {
	start, end int
	text       string
}

// operator is one kind of mistake. The function edits returns the edits that make the mistake at
// a node of a source, or none where the operator does not apply.
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

// negateCondition negates the condition of an if. It skips the condition `err != nil`, because
// every test would notice that.
func negateCondition(s source, n ast.Node) []edit {
	branch, ok := n.(*ast.IfStmt)
	if !ok || s.of(branch.Cond) == "err != nil" {
		return nil
	}
	return s.edit(branch.Cond, "!("+s.of(branch.Cond)+")")
}

// shiftBound changes whether a comparison includes its bound.
func shiftBound(s source, n ast.Node) []edit {
	shifted := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	comparison, ok := n.(*ast.BinaryExpr)
	if !ok || shifted[comparison.Op] == "" {
		return nil
	}
	return s.edit(comparison, s.of(comparison.X)+" "+shifted[comparison.Op]+" "+s.of(comparison.Y))
}

// held matches calls that acquire, release or end something. A test notices only by chance that
// such a call is missing.
var held = regexp.MustCompile(`\b(Lock|Unlock|RLock|RUnlock|Close|Stop|Release|Wait|cancel|close)\(\)$`)

// logged matches a log line.
var logged = regexp.MustCompile(`(?i)\blog(ger)?(\([^()]*\))?\.\w+\(`)

// dropStatement removes a statement of a block or a case. It removes only calls, assignments,
// increments, sends and branches. Of these it keeps declarations, log lines, panics, and calls
// that acquire, release or end something.
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

// asks matches the names of functions that decide whether something may be done.
var asks = regexp.MustCompile(`^(?i:is|has|may|can|allow|check|verify|validate|limit|spend|block|refuse|authorize)(ed|s)?([A-Z].*)?$`)

// skipPolicyCall disables a guard. A guard is an if that calls a policy function and whose body
// only leaves the function or loop.
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

// isPolicy reports whether a call is to a package that makes decisions, or to a function of
// this module whose name matches asks.
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

// isStandard reports whether the source imports a package of the standard library that has the
// given name.
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
