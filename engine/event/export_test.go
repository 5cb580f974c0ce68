package event

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// LimitTransactions sets the longest time that the emitter waits for a database. Call it before
// Run.
func (e *Emitter) LimitTransactions(limit time.Duration) {
	e.Store = patientStore{e.Store.(patientStore).Store, limit}
}

// HasStream reports whether the emitter has a stream of u in memory.
func (e *Emitter) HasStream(u vocab.Username) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams[u] != nil
}

// MakeRoom measures the memory of the streams and shortens them if necessary, as Run does every
// minute. Call it only after Run has ended.
func (e *Emitter) MakeRoom(ctx context.Context) { e.makeRoom(ctx) }
