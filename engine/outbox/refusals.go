package outbox

import (
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// refused is the key of a count. Refusals with the same token, action, outcome and hour are
// counted together.
type refused struct {
	token           uuid.UUID
	action, outcome string // action is empty when the vocabulary has no such action
	hour            time.Time
}

// maxRefused limits the counts that may wait in memory. Further new counts are dropped.
const maxRefused = 10_000

// refusals counts refused dispatches.
type refusals struct {
	store   Store
	log     *slog.Logger
	written *policy.Limiter // limits how often the counts are stored, per token

	mu      sync.Mutex
	size    int
	waiting map[vocab.Username]map[refused]int
}

func newRefusals(store Store, log *slog.Logger, now func() time.Time) *refusals {
	return &refusals{store: store, log: log, written: policy.WrittenRefusals.Limiter(now), waiting: map[vocab.Username]map[refused]int{}}
}

// countRefusal counts a refusal in memory. If the limiter allows a write for its token now,
// countRefusal removes and returns all counts of the user, and the caller stores them. If no
// write is allowed and maxRefused counts are in memory, a refusal without a count is dropped.
func (r *refusals) countRefusal(u vocab.Username, kind refused) map[refused]int {
	write, _ := r.written.Allow(u.String() + " " + kind.token.String())
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.waiting[u]
	if counts == nil {
		counts = map[refused]int{}
		r.waiting[u] = counts
	}
	if write || r.size < maxRefused || counts[kind] > 0 {
		if counts[kind]++; counts[kind] == 1 {
			r.size++
		}
	}
	if !write {
		return nil
	}
	delete(r.waiting, u)
	r.size -= len(counts)
	return counts
}

// takeAll removes the counts of all users from memory, and returns them.
func (r *refusals) takeAll() map[vocab.Username]map[refused]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.waiting
	r.waiting, r.size = map[vocab.Username]map[refused]int{}, 0
	return all
}
