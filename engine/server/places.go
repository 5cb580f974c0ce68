package server

import "sync"

const (
	// mostPlaces limits the places that are remembered. The newest mostPlaces/2 are always
	// remembered.
	mostPlaces = 50_000

	// keptFromElsewhere is the part of the attempts at a name that is reserved for the places
	// from which its user has signed in. An attacker who guesses passwords from many addresses
	// cannot use up that part.
	keptFromElsewhere = 0.5
)

// places remembers in memory from which clients each user has signed in. When it is full, it
// forgets the oldest sign-ins. It is safe for concurrent use.
type places struct {
	half int

	mu         sync.Mutex
	young, old map[string]bool // two generations, as in a policy.Limiter
}

func newPlaces(most int) *places { return &places{half: most / 2, young: map[string]bool{}} }

func (t attempt) place() string { return t.user.String() + " " + t.client.String() }

// add remembers that the user of an attempt has signed in from the attempt's client.
func (p *places) add(t attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.young) >= p.half {
		p.young, p.old = map[string]bool{}, p.young
	}
	p.young[t.place()] = true
}

// keptFrom returns the part of the attempts at a name that the attempt t may not use, because that
// part is reserved for places from which the user has signed in.
func (p *places) keptFrom(t attempt) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.young[t.place()] || p.old[t.place()] {
		return 0
	}
	return keptFromElsewhere
}
