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

// errFull asks a peer to come again when the memory is taken.
var errFull = fault.New(fault.Unavailable, "the engine is overloaded; try again later").After(5 * time.Second)

// memory bounds what requests under way take.
type memory struct {
	room   *policy.Pool // bytes
	actors *actor.Resolver
}

// takeRoom reserves memory for a parsed request: for its client address, or its signer's domain
// once that is proven.
func (m *memory) takeRoom(x *receiving) error {
	n := min(perRequest+perByte*int64(len(x.Body)), policy.Memory.Pool)
	if !m.room.Take(x.paidBy(), n) {
		return errFull
	}
	x.room, x.roomOf = n, x.paidBy()
	return nil
}

// giveRoom gives back what a request has reserved.
func (m *memory) giveRoom(x *receiving) {
	m.room.Give(x.roomOf, x.room)
	x.room = 0
}

// runAside runs work that may have to wait for another server, and does not look at the activity.
// While it waits the request holds its body alone: the parsed activity, which takes many times
// the memory, is let go of and parsed again afterwards, unless another one stands in its place,
// or the work failed before the sender was proven. Otherwise senders whose servers stall would
// take the memory of everybody else.
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
		return full // and that is the end of the request
	}
	a, unread := vocab.ParseActivity(x.Body)
	if unread != nil {
		return unread
	}
	x.Activity, x.parsed = a, a
	return err
}

// fetchObject fetches an object from its own server, aside; see actor.Resolver.Object.
func (m *memory) fetchObject(ctx context.Context, x *receiving, id vocab.ID, as *vocab.Username) (o *vocab.Object, raw json.RawMessage, err error) {
	err = m.runAside(ctx, x, func(ctx context.Context) (err error) {
		o, raw, err = m.actors.Object(ctx, id, as)
		return err
	})
	return o, raw, err
}

// fetchActor asks an actor's server for the actor, aside.
func (m *memory) fetchActor(ctx context.Context, x *receiving, id vocab.ID) (a *vocab.Actor, err error) {
	err = m.runAside(ctx, x, func(ctx context.Context) (err error) {
		a, err = m.actors.Fresh(ctx, id)
		return err
	})
	return a, err
}
