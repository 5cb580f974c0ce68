package conversation

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// MaxLive is the number of conversations that may be live at the same time.
const MaxLive = maxLive

// Waiting returns how many requests wait for a conversation.
func (r *Registry) Waiting(at Place) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.live[at]; c != nil {
		return c.box.Len()
	}
	return 0
}

// HoldsRow reports whether a live conversation still has the database row of its last batch in
// memory. Call it only while no request waits for the conversation.
func (r *Registry) HoldsRow(at Place) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.live[at].seen != nil
}

// CountLive returns how many conversations are live.
func (r *Registry) CountLive() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.live)
}

// DropIdle drops the conversations without work, and returns how many are left.
func (r *Registry) DropIdle() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropIdle(0)
	return len(r.live)
}

// JoinPair calls joinPair for a group. In it, the group's host says who the members are, and
// whether the group is the host's conversation of two with the user.
func JoinPair(ctx context.Context, tx *user.Tx, a Arrival, j *user.JoinedConversation, isPair bool, members []vocab.ID) (bool, error) {
	return joinPair(ctx, tx, a, j, &rosterSaid{actors: members, isPair: isPair})
}

// JoinUpgrade calls joinPair for the host's conversation of two with the user. If predecessor is
// not empty, the conversation continues the one with that URI.
func JoinUpgrade(ctx context.Context, tx *user.Tx, a Arrival, j *user.JoinedConversation, predecessor vocab.ID) (bool, error) {
	return joinPair(ctx, tx, a, j, &rosterSaid{actors: []vocab.ID{a.Me, j.Host}, isPair: true, predecessor: predecessor})
}
