package inbox

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keptTakenAway is how long what strangers took away is remembered at least: as long as most
// servers go on delivering what came before it.
const keptTakenAway = 12 * time.Hour

// takenAway remembers, in memory alone, what strangers undid and deleted before it came: a user's
// database keeps no rows for somebody that the user has nothing to do with. There are two
// generations; the older one is dropped as a whole.
type takenAway struct {
	now func() time.Time

	mu         sync.Mutex
	since      time.Time
	young, old map[[sha256.Size]byte]struct{}
	room       *policy.Pool // of the young
}

func newTakenAway(now func() time.Time) *takenAway {
	return &takenAway{now: now, since: now(), young: map[[sha256.Size]byte]struct{}{}, room: policy.TakenAway.NewPool()}
}

// markOf stands for an id of an actor's in a user's eyes.
func markOf(u vocab.Username, id, actor vocab.ID) [sha256.Size]byte {
	return sha256.Sum256([]byte(u.String() + "\n" + string(id) + "\n" + string(actor)))
}

// add remembers an id that the sender of x took away, if the sender's domain has room.
func (t *takenAway) add(x *applying, id vocab.ID) {
	if id == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now().Sub(t.since) > keptTakenAway {
		t.since, t.old, t.young, t.room = t.now(), t.young, map[[sha256.Size]byte]struct{}{}, policy.TakenAway.NewPool()
	}
	m := markOf(x.User, id, x.Actor.ID)
	if _, there := t.young[m]; there || !t.room.Take(policy.RegistrableDomain(x.Actor.ID.Host()), 1) {
		return
	}
	t.young[m] = struct{}{}
}

// hasTakenAway reports whether x, or the object that it creates, was taken away.
func (t *takenAway) hasTakenAway(x *applying) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.young)+len(t.old) == 0 {
		return false
	}
	return t.hasMark(markOf(x.User, x.Activity.ID, x.Actor.ID)) || x.Activity.Type == vocab.Create && t.hasMark(markOf(x.User, x.Activity.Object.ID, x.Actor.ID))
}

func (t *takenAway) hasMark(m [sha256.Size]byte) bool {
	_, young := t.young[m]
	_, old := t.old[m]
	return young || old
}
