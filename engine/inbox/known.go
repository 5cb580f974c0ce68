package inbox

import (
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// known remembers which acquaintances are committed, so that they are not written again for
// every activity. An acquaintance is a pair of an actor and a user that the actor may concern.
// It relies on a pair for instance.AcquaintanceBelieved only, because
// db.Cluster.PruneAcquaintances may have removed the row of an older pair.
type known struct {
	mu    sync.Mutex
	pairs map[acquaintance]time.Time // the time just before the row was committed
}

type acquaintance struct {
	actor vocab.ID
	user  vocab.Username
}

// maxKnown is the greatest number of pairs that are remembered. When there would be more, all
// earlier pairs are forgotten.
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
