package actor

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// usedEvery is how often it is noted of a stored actor that it is used.
const usedEvery = 24 * time.Hour

// maxUsed bounds of how many actors memory says that they are stored.
const maxUsed = 50_000

// memory remembers actors of other servers, and stores those that users here have to do with.
type memory struct {
	local  *Local
	store  Store
	keeper Keeper
	now    func() time.Time
	actors *lru[vocab.ID, *instance.RemoteActor] // by canonical id
	used   *lru[vocab.ID, time.Time]             // by canonical id: since when an actor is stored and noted as used
}

// Keep stores an actor of another server that users of this server have to do with, and notes once
// a day that it is used. An actor that nobody here has to do with is in memory alone: whoever
// invents actors stores nothing. pay is told how many bytes an actor takes that is not stored yet,
// and may refuse it.
func (m *memory) Keep(ctx context.Context, a *vocab.Actor, pay func(bytes int) error) error {
	id, now := a.ID.Canonical(), m.now()
	if m.local.isOwn(id) || len(a.Raw) == 0 { // nothing is known of an actor that is gone
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

// storeActor stores an actor as it is in memory. When it was fetched is not known of one that is
// not there any more: it is asked for again at its next use.
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
