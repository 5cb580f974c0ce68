// Package holding keeps code that holds a connection to a user's database from waiting for another
// connection or for the network. Such a wait could become a deadlock, because the awaited party
// may itself be waiting for the connection that the code holds.
package holding

import (
	"context"
	"errors"
)

type key struct{}

// MarkHolder returns a context for code that holds a connection to a user's database.
func MarkHolder(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// RefuseHolder returns an Internal error if ctx belongs to code that holds a connection, because
// it is a bug if such code waits. The parameter wanted names the resource that the caller is about
// to wait for. In a build with the race detector RefuseHolder panics instead, so that tests find
// such bugs.
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
