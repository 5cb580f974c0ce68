package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Waiting returns how many requests wait for a conversation.
func (r *Registry) Waiting(at Place) int64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.live[at]; c != nil {
		return c.waiting.Load()
	}
	return 0
}

// DropIdle ends conversations that nothing is asked of, and returns how many are left.
func (r *Registry) DropIdle() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropIdle(0)
	return len(r.live)
}

// JoinPair is joinPair.
func JoinPair(ctx context.Context, tx PairTx, a Arrival, j *db.JoinedConversation, members []vocab.ID) (bool, error) {
	return joinPair(ctx, tx, a, j, members)
}
