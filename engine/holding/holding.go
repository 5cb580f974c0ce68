// Package holding keeps code that holds a connection to a user's database from waiting for another
// connection, or for the network. That is how a deadlock comes about: the holder may wait for
// somebody who waits for the holder's connection.
package holding

import (
	"context"
	"errors"
)

type key struct{}

// MarkHolder returns a context for code that holds a connection.
func MarkHolder(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// RefuseHolder returns an Internal error if the caller holds a connection, which is a bug. wanted
// names the thing that the caller is about to wait for. In a build with the race detector, in
// which tests look for bugs, it panics.
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
