package event

import "github.com/lightweb/lightweb/engine/vocab"

// HasStream reports whether the emitter knows a stream of u.
func (e *Emitter) HasStream(u vocab.Username) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.streams[u] != nil
}
