package socket

import (
	"context"
	"slices"
	"sync"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// deliveredGroup is the name of a consumer group of each user's stream. The position of the group
// is the last event that was sent to any client of the user, except LLM engines. The hub never
// moves the position back.
const deliveredGroup = "ws"

// delivered stores, for each user, the last event that was sent to a client, until MarkDelivered
// moves the user's consumer group to that event.
type delivered struct {
	mu   sync.Mutex
	last map[vocab.Username]keyspace.ID
}

// note stores that an event was sent to a client of a user.
func (d *delivered) note(u vocab.Username, id keyspace.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last[u].Less(id) {
		d.last[u] = id
	}
}

func (d *delivered) takeAll() map[vocab.Username]keyspace.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.last
	d.last = map[vocab.Username]keyspace.ID{}
	return all
}

// noteDelivered stores the last event that was sent to the client. The client of an LLM engine
// does not count, because it shows its user nothing.
func (s *Socket) noteDelivered() {
	if s.sent != (keyspace.ID{}) && !s.request.Assistant {
		s.hub.delivered.note(s.request.User, s.sent)
	}
}

// lastID returns the id of the last event among frames, or zero if there is none.
func lastID(frames []Frame) (id keyspace.ID) {
	for _, f := range frames {
		if id.Less(f.ID) {
			id = f.ID
		}
	}
	return id
}

// MarkDelivered moves the consumer groups of users to the last events that were sent to their
// clients. Groups that Redis cannot move now are moved the next time.
func (h *Hub) MarkDelivered(ctx context.Context) {
	last := h.delivered.takeAll()
	users := make([]vocab.Username, 0, len(last))
	for u := range last {
		users = append(users, u)
	}
	for part := range slices.Chunk(users, together) {
		if err := h.moveGroups(ctx, part, last); err != nil {
			for _, u := range part {
				h.delivered.note(u, last[u])
			}
		}
	}
}

func (h *Hub) moveGroups(ctx context.Context, users []vocab.Username, last map[vocab.Username]keyspace.ID) error {
	found, err := h.Streams.Groups(ctx, users, stream)
	if err != nil {
		return err
	}
	var behind []vocab.Username
	var ids []keyspace.ID
	for n, u := range users {
		if mark, is := markOf(found[n]); is && mark.Less(last[u]) {
			behind, ids = append(behind, u), append(ids, last[u])
		}
	}
	return h.Streams.MoveGroups(ctx, behind, stream, deliveredGroup, ids)
}

// findDelivered returns the position of the user's deliveredGroup, or an empty text if it is not
// known now.
func (h *Hub) findDelivered(ctx context.Context, u vocab.Username) string {
	found, err := h.Streams.Groups(ctx, []vocab.Username{u}, stream)
	if err != nil {
		return ""
	}
	mark, is := markOf(found[0])
	if !is {
		return ""
	}
	return mark.String()
}

// markOf returns the position of deliveredGroup, and whether the group exists.
func markOf(groups []keyspace.Group) (mark keyspace.ID, is bool) {
	for _, g := range groups {
		if g.Name == deliveredGroup {
			return g.Delivered, true
		}
	}
	return keyspace.ID{}, false
}
