package inbox

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// keptTakenAway is the shortest time for which the id of something that a stranger undid or
// deleted is remembered. Most servers stop retrying an earlier activity within that time.
const keptTakenAway = 12 * time.Hour

// takenAway remembers the ids of activities and objects that strangers undid or deleted before
// the activities and objects arrived. It does so in memory only, because a user's database
// stores no rows for an actor that the user has nothing to do with. The ids are kept in two
// generations, of which the older one is dropped as a whole.
type takenAway struct {
	now func() time.Time

	mu         sync.Mutex
	since      time.Time
	young, old map[[sha256.Size]byte]struct{}
	room       *policy.Pool // for ids in the young generation
}

func newTakenAway(now func() time.Time) *takenAway {
	return &takenAway{now: now, since: now(), young: map[[sha256.Size]byte]struct{}{}, room: policy.TakenAway.NewPool()}
}

// markOf returns a hash of an id, of the actor that the id belongs to, and of the user that the
// activity or object would reach.
func markOf(u vocab.Username, id, actor vocab.ID) [sha256.Size]byte {
	return sha256.Sum256([]byte(u.String() + "\n" + string(id) + "\n" + string(actor)))
}

// add remembers the id of something that the sender of x undid or deleted, if the sender's
// domain has room.
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

// hasTakenAway reports whether the activity of x, or the object that it creates, was undone or
// deleted before it arrived.
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
