package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// removeConjunct makes a condition of an SQL statement true. The condition is the text after a
// WHERE or an AND, up to the next AND or the end of the clause. The condition stays in the
// statement, so that the parameters in it keep their types.
func removeConjunct(s source, n ast.Node) []edit {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	start, end := s.offset(literal.Pos()), s.offset(literal.End())
	continued := strings.HasPrefix(strings.TrimLeft(s.text[end:], " \t\n"), "+")
	var edits []edit
	for _, c := range findConjuncts(s.text[start+1:end-1], continued) {
		from, to := start+1+c[0], start+1+c[1]
		edits = append(edits, edit{from, to, "(" + s.text[from:to] + " OR true)"})
	}
	return edits
}

// sqlToken matches a word, a bracket, a string, or any other character that is not blank.
var sqlToken = regexp.MustCompile(`'[^']*'|\w+|\S`)

// clauseEnds are the words that end a condition.
var clauseEnds = map[string]bool{"AND": true, "OR": true, "ORDER": true, "GROUP": true, "LIMIT": true, "OFFSET": true,
	"RETURNING": true, "FOR": true, "ON": true, "UNION": true, "EXCEPT": true, "INTERSECT": true, "WINDOW": true,
	"HAVING": true, "THEN": true, "WHEN": true, "ELSE": true, "SET": true, "DO": true, "JOIN": true, "LEFT": true, ";": true}

// findConjuncts returns the start and end offsets of the conjuncts in an SQL text. If continued
// is true, the statement goes on after the text. Then a conjunct that reaches the end of the
// text is incomplete, and findConjuncts leaves it out.
func findConjuncts(text string, continued bool) [][2]int {
	tokens := sqlToken.FindAllStringIndex(text, -1)
	var found [][2]int
	between := false
	for i, t := range tokens {
		switch word := text[t[0]:t[1]]; {
		case word == "BETWEEN":
			between = true
		case word == "AND" && between:
			between = false
		case word == "WHERE", word == "AND":
			n, whole := conjunctLength(text, tokens[i+1:])
			if n > 0 && (whole || !continued) {
				found = append(found, [2]int{tokens[i+1][0], tokens[i+n][1]})
			}
		}
	}
	return found
}

// conjunctLength returns the number of tokens in the conjunct at the start of tokens. It
// reports whether the conjunct ends before the text does. The number is 0 if the text ends
// inside a bracket.
func conjunctLength(text string, tokens [][]int) (n int, whole bool) {
	depth, between := 0, false
	for i, t := range tokens {
		word := text[t[0]:t[1]]
		switch {
		case word == "(" || word == "CASE":
			depth++
		case depth == 0 && (word == ")" || word == "END"):
			return i, true
		case word == ")" || word == "END":
			depth--
		case depth > 0:
		case word == "BETWEEN":
			between = true
		case word == "AND" && between:
			between = false
		case clauseEnds[word]:
			return i, true
		}
	}
	if depth > 0 {
		return 0, false
	}
	return len(tokens), false
}
