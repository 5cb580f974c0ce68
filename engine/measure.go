package engine

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// DatabaseServer says what the PostgreSQL server is and how it is set.
func (e *Engine) DatabaseServer(ctx context.Context) (db.Server, error) { return e.in.DB.Server(ctx) }

// DatabaseWaits counts what the sessions of Lightweb wait for right now.
func (e *Engine) DatabaseWaits(ctx context.Context) (map[string]int, error) {
	return e.in.DB.Waits(ctx)
}

// Received counts what u has of an actor: activities, and those of them that the feed shows.
func (e *Engine) Received(ctx context.Context, u vocab.Username, from vocab.ID) (activities, shown int, err error) {
	return e.in.DB.Received(ctx, u, from)
}

// Multiply copies a stored activity until there are n of it, to measure with; its id begins with that of its object.
func (e *Engine) Multiply(ctx context.Context, u vocab.Username, activity, object vocab.ID, n int, step func(done, all int)) error {
	return e.in.DB.Multiply(ctx, u, activity, object, n, step)
}

// Owe owes n deliveries of a user more, copies of that of an activity, to a host that has failed as h says, to measure with.
// An engine that serves does not notice how the host is.
func (e *Engine) Owe(ctx context.Context, u vocab.Username, activity vocab.ID, h db.Host, n int, step func(done, all int)) error {
	return e.in.DB.Owe(ctx, u, activity, h, n, e.in.Now(), step)
}

// Owed counts the deliveries of u that are not at an end.
func (e *Engine) Owed(ctx context.Context, u vocab.Username) (n int, err error) {
	err = e.in.DB.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		open, err := tx.OpenDeliveries(ctx)
		for _, o := range open {
			n += o.Count
		}
		return err
	})
	return n, err
}

// Destroy drops every database of an instance whose databases have a name of their own, and closes the engine's.
func (e *Engine) Destroy(ctx context.Context) error {
	if e.in.Config.Database.Name == "" {
		return fault.New(fault.Forbidden, "only an instance with a name of its own is destroyed")
	}
	store := e.in.DB
	e.in.DB = nil
	return store.Destroy(ctx)
}
