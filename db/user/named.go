package user

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
)

// named has the arguments of a statement by name. It must have exactly those that the statement
// names.
type named map[string]any

// rewritten is a statement with numbers in place of the names of its arguments.
type rewritten struct {
	query string
	names []string // in the order of the numbers
}

// rewrites has the rewritten form of each statement that was run with named arguments, by its text.
// No text contains data, so there are few of them. Without rewrites, pgx would look for the names
// at each run, which takes tens of microseconds for a long statement.
var rewrites sync.Map

// RewriteQuery implements pgx.QueryRewriter.
func (n named) RewriteQuery(ctx context.Context, conn *pgx.Conn, query string, _ []any) (string, []any, error) {
	known, there := rewrites.Load(query)
	if !there {
		r, err := n.rewriteFirst(ctx, conn, query)
		if err != nil {
			return "", nil, err
		}
		known = r
	}
	r := known.(rewritten)
	args := make([]any, len(r.names))
	for i, name := range r.names {
		if args[i], there = n[name]; !there {
			break
		}
	}
	if !there || len(n) != len(args) {
		return pgx.StrictNamedArgs(n).RewriteQuery(ctx, conn, query, nil) // its error says which argument is wrong
	}
	return r.query, args, nil
}

// rewriteFirst rewrites a statement that was not run before, and keeps the result.
func (n named) rewriteFirst(ctx context.Context, conn *pgx.Conn, query string) (rewritten, error) {
	own := make(pgx.StrictNamedArgs, len(n)) // the argument of each name is the name
	for name := range n {
		own[name] = name
	}
	text, order, err := own.RewriteQuery(ctx, conn, query, nil)
	if err != nil {
		return rewritten{}, err
	}
	r := rewritten{query: text, names: make([]string, len(order))}
	for i, name := range order {
		r.names[i] = name.(string)
	}
	rewrites.Store(query, r)
	return r, nil
}
