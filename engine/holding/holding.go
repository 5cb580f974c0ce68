// Package holding keeps those who hold a connection to a user's database from asking for what may
// be long in coming: another connection, or the network. Who waits for such a thing with a
// connection in hand can wait for somebody who waits for that connection.
package holding

import (
	"context"
	"errors"
)

type key struct{}

// Mark returns a context that says of those who are given it that they hold a connection.
func Mark(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Check refuses to give what is asked for to who holds a connection: that is a bug of the caller's,
// an Internal error. In a build with the race detector, which is the one that tests are run in to
// find bugs, it panics.
func Check(ctx context.Context, wanted string) error {
	if ctx.Value(key{}) == nil {
		return nil
	}
	err := errors.New("who holds a connection to a user's database asked for " + wanted)
	if strict {
		panic(err)
	}
	return err
}
