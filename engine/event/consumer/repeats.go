package consumer

// repeats remembers the last ids that were added, up to a fixed number.
type repeats struct {
	ids  map[string]bool
	ring []string // a ring buffer of the ids
	next int
}

func newRepeats(n int) *repeats { return &repeats{ids: make(map[string]bool), ring: make([]string, n)} }

func (r *repeats) has(id string) bool { return r.ids[id] }

func (r *repeats) add(id string) {
	delete(r.ids, r.ring[r.next])
	r.ids[id] = true
	r.ring[r.next] = id
	r.next = (r.next + 1) % len(r.ring)
}
