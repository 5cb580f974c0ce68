package inbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errFull asks a peer to send the request again later, since the memory for requests is used up.
// It has a code because a fetch may end with it (see runAside): this server is the cause.
var errFull = fault.New(fault.Unavailable, "the engine is overloaded; try again later").WithCode("overloaded").After(5 * time.Second)

// memory limits how much memory the requests in progress take.
type memory struct {
	room      *policy.Pool // bytes
	actors    *actor.Resolver
	bodyLimit int64
}

// takeRoom reserves memory for a request and its parsed activity. The memory counts against the
// party that caused the request; see paidBy.
func (m *memory) takeRoom(x *receiving) error {
	n := min(m.roomFor(max(int64(len(x.Body)), x.large)), policy.Memory.Pool)
	if !m.room.Take(x.paidBy(), n) {
		return errFull
	}
	x.room, x.roomOf = n, x.paidBy()
	return nil
}

// roomFor returns how many bytes of memory a request with a body of n bytes takes.
func (m *memory) roomFor(n int64) int64 {
	common := min(n, m.bodyLimit)
	return perRequest + perByte*common + perLargeByte*(n-common)
}

// giveRoom releases the memory that a request has reserved for itself and its parsed activity.
func (m *memory) giveRoom(x *receiving) {
	m.room.Give(x.roomOf, x.room)
	x.room = 0
}

// takeDocument reserves memory for a document of n bytes that was fetched for a request. A request
// may be small and name a large document, so the document counts like a body. The memory is held
// until giveAll, because most documents stay in memory until the activity is durable.
func (m *memory) takeDocument(x *receiving, n int) error {
	if !m.room.Take(x.paidBy(), perByte*int64(n)) {
		return errFull
	}
	x.documents += int64(n)
	return nil
}

// giveAll releases all the memory that a request has reserved. Documents are fetched only when it
// is settled which party pays for the request.
func (m *memory) giveAll(x *receiving) {
	m.giveRoom(x)
	m.room.Give(x.paidBy(), perByte*x.documents)
	x.documents = 0
}

// runAside runs the function work, which may have to wait for another server and does not read the
// activity. While work waits, the request keeps only its body, and releases the memory of the
// parsed activity, which is many times as large. Otherwise senders whose servers stall could use
// up the memory for all others. Afterwards the body is parsed again, unless work has set
// x.Activity to another activity, or has failed before the sender was proven.
func (m *memory) runAside(ctx context.Context, x *receiving, work func(context.Context) error) error {
	if x.Activity != x.parsed {
		return work(ctx)
	}
	err := work(actor.BeforeWaiting(ctx, func() {
		x.Activity, x.parsed = nil, nil
		m.giveRoom(x)
	}))
	if x.Activity != nil || err != nil && x.signer == nil {
		return err
	}
	if full := m.takeRoom(x); full != nil {
		return full // the request ends here
	}
	a, unread := readRequest(x, m.actors.Local)
	if unread != nil {
		return unread
	}
	x.Activity, x.parsed = a, a
	return err
}

// fetchObject calls actor.Resolver.Object within runAside, to fetch an object from its own
// server.
func (m *memory) fetchObject(ctx context.Context, x *receiving, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error) {
	return m.fetchBy(ctx, m.actors.Object, x, id, as)
}

// objectFetch is the method of an actor.Resolver that fetches an object: Object or ObjectNow.
type objectFetch func(ctx context.Context, id vocab.ID, as *vocab.Username) (*vocab.Object, json.RawMessage, error)

// fetchBy is fetchObject with a choice of the method.
func (m *memory) fetchBy(ctx context.Context, fetch objectFetch, x *receiving, id vocab.ID, as *vocab.Username) (o *vocab.Object, raw json.RawMessage, err error) {
	err = m.runAside(ctx, x, func(ctx context.Context) (err error) {
		o, raw, err = fetch(ctx, id, as)
		return err
	})
	if err == nil {
		err = m.takeDocument(x, len(raw))
	}
	return o, raw, err
}

// fetchActor calls actor.Resolver.Fresh within runAside, to fetch an actor from its own server.
func (m *memory) fetchActor(ctx context.Context, x *receiving, id vocab.ID) (a *vocab.Actor, err error) {
	err = m.runAside(ctx, x, func(ctx context.Context) (err error) {
		a, err = m.actors.Fresh(ctx, id)
		return err
	})
	return a, err
}
