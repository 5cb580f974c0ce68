package inbox

import (
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// known remembers which acquaintances are committed, so that not every activity writes them
// again. It forgets them before a night can have removed them (db.Cluster.PruneAcquaintances).
type known struct {
	mu    sync.Mutex
	pairs map[acquaintance]time.Time // when the row was about to be committed
}

type acquaintance struct {
	actor vocab.ID
	user  vocab.Username
}

// maxKnown bounds the memory; beyond it, everything is forgotten and learnt again.
const maxKnown = 100_000

func newKnown() *known { return &known{pairs: map[acquaintance]time.Time{}} }

func (k *known) hasAll(actor vocab.ID, users []vocab.Username, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range users {
		at, ok := k.pairs[acquaintance{actor, u}]
		if !ok || now.Sub(at) >= instance.AcquaintanceBelieved {
			return false
		}
	}
	return true
}

func (k *known) addAll(actor vocab.ID, users []vocab.Username, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pairs)+len(users) > maxKnown {
		clear(k.pairs)
	}
	for _, u := range users {
		k.pairs[acquaintance{actor, u}] = at
	}
}
