package inbox

import (
	"sync"

	"github.com/lightweb/lightweb/engine/vocab"
)

// known remembers which acquaintances are committed, so that not every activity writes them again.
type known struct {
	mu    sync.Mutex
	pairs map[acquaintance]struct{}
}

type acquaintance struct {
	actor vocab.ID
	user  vocab.Username
}

// maxKnown bounds the memory; beyond it, everything is forgotten and learnt again.
const maxKnown = 100_000

func newKnown() *known { return &known{pairs: map[acquaintance]struct{}{}} }

func (k *known) all(actor vocab.ID, users []vocab.Username) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, u := range users {
		if _, ok := k.pairs[acquaintance{actor, u}]; !ok {
			return false
		}
	}
	return true
}

func (k *known) add(actor vocab.ID, users []vocab.Username) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pairs)+len(users) > maxKnown {
		clear(k.pairs)
	}
	for _, u := range users {
		k.pairs[acquaintance{actor, u}] = struct{}{}
	}
}
