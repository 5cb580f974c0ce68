// Package holding refuses waits of code that holds a connection to a user's database: such code
// must not wait for another connection or for the network. Otherwise there could be a deadlock,
// because the code for which it waits may wait for its connection.
package holding

import (
	"context"
	"errors"
)

type key struct{}

// MarkHolder returns a context for code that holds a connection to a user's database.
func MarkHolder(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// RefuseHolder returns an Internal error if ctx is that of a holder, which is a bug. wanted
// names the thing for which the caller is about to wait. In a build with the race detector it
// panics, so that tests find such bugs.
func RefuseHolder(ctx context.Context, wanted string) error {
	if ctx.Value(key{}) == nil {
		return nil
	}
	err := errors.New("a holder of a connection to a user's database asked for " + wanted)
	if strict {
		panic(err)
	}
	return err
}
