package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Waiting returns how many requests wait for a conversation.
func (r *Registry) Waiting(at Place) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.live[at]; c != nil {
		return c.box.Len()
	}
	return 0
}

// HoldsRow reports whether a live conversation holds the row of its last batch. No request may
// wait for it.
func (r *Registry) HoldsRow(at Place) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.live[at].seen != nil
}

// DropIdle ends conversations that nothing is asked of, and returns how many are left.
func (r *Registry) DropIdle() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropIdle(0)
	return len(r.live)
}

// JoinPair is joinPair for a group of which its host says who is in it, and whether it is the
// host's conversation with the user.
func JoinPair(ctx context.Context, tx *user.Tx, a Arrival, j *user.JoinedConversation, isPair bool, members []vocab.ID) (bool, error) {
	return joinPair(ctx, tx, a, j, &rosterSaid{actors: members, isPair: isPair})
}

// JoinUpgrade is joinPair for a host's conversation with the user, which continues another one
// unless predecessor is empty.
func JoinUpgrade(ctx context.Context, tx *user.Tx, a Arrival, j *user.JoinedConversation, predecessor vocab.ID) (bool, error) {
	return joinPair(ctx, tx, a, j, &rosterSaid{actors: []vocab.ID{a.Me, j.Host}, isPair: true, predecessor: predecessor})
}
