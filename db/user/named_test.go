package user_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
)

// A statement is rewritten once. Each run of it has its own arguments, and is refused when one is
// missing or is not in the statement.
func TestNamedArguments(t *testing.T) {
	t.Parallel()
	const query = `SELECT @b, '@c', @a, @b WHERE raw @> '{}'`
	for _, tt := range []struct {
		args user.NamedArgs
		want []any
		err  string
	}{
		{user.NamedArgs{"a": 1}, nil, "argument b"},
		{user.NamedArgs{"a": 1, "b": 2}, []any{2, 1}, ""},
		{user.NamedArgs{"a": "x", "b": nil}, []any{nil, "x"}, ""},
		{user.NamedArgs{"a": 1}, nil, "argument b"},
		{user.NamedArgs{"b": 1}, nil, "argument a"},
		{user.NamedArgs{"a": 1, "b": 2, "c": 3}, nil, "argument c"},
		{user.NamedArgs{"a": 1, "c": 3}, nil, "argument"},
		{nil, nil, "argument"},
	} {
		got, args, err := tt.args.RewriteQuery(t.Context(), nil, query, nil)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v: error %v, want one about %s", tt.args, err, tt.err)
			}
			continue
		}
		if want := `SELECT $1, '@c', $2, $1 WHERE raw @> '{}'`; err != nil || got != want || !slices.Equal(args, tt.want) {
			t.Errorf("%v: %s with %v, %v", tt.args, got, args, err)
		}
	}
}
