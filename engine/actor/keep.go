package actor

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// usedEvery is the least time between two writes of a stored actor's use to the database.
const usedEvery = 24 * time.Hour

// maxUsed is the greatest number of actors in memory.used.
const maxUsed = 50_000

// memory caches actors of other servers, and stores those that local users deal with.
type memory struct {
	local  Addresses
	store  Store
	keeper Keeper
	now    func() time.Time
	actors *lru[vocab.ID, *instance.RemoteActor] // by canonical id
	used   *lru[vocab.ID, time.Time]             // by canonical id: when the actor's use was last written
}

// Keep stores an actor of another server that users of this server deal with, and writes once a
// day that the actor is used. All other actors are only in memory, so a peer that invents actors
// cannot fill the database. If the actor is not stored yet, Keep calls the function pay with the
// actor's size in bytes. If pay returns an error, Keep returns that error and does not store the
// actor.
func (m *memory) Keep(ctx context.Context, a *vocab.Actor, pay func(bytes int) error) error {
	id, now := a.ID.Canonical(), m.now()
	if m.local.isOwn(id) || len(a.Raw) == 0 { // an actor that is gone has no document
		return nil
	}
	if at, ok := m.used.get(id); ok && now.Sub(at) < usedEvery {
		return nil
	}
	stored, err := m.keeper.NoteUse(ctx, id, now, now.Add(-usedEvery))
	if err != nil {
		return err
	}
	if !stored {
		if err := m.storeActor(ctx, a, pay); err != nil {
			return err
		}
	}
	m.used.put(id, now)
	return nil
}

// storeActor stores the copy of an actor that is in memory. If it is not in memory any more,
// storeActor stores a itself, with zero Unix time as the time of the fetch, because the real time
// is unknown. So the next Resolve fetches the actor again.
func (m *memory) storeActor(ctx context.Context, a *vocab.Actor, pay func(bytes int) error) error {
	row := instance.RemoteActor{Actor: a, FetchedAt: time.Unix(0, 0)}
	if have, ok := m.actors.get(a.ID.Canonical()); ok && !have.Gone {
		row = *have
	}
	if err := pay(len(row.Actor.Raw)); err != nil {
		return err
	}
	return m.keeper.Save(ctx, row)
}
