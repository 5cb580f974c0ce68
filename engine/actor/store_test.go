package actor

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// forgetful is a store that holds nothing, for what memory alone must do.
type forgetful struct{}

func (forgetful) RemoteActor(context.Context, vocab.ID) (*db.RemoteActor, error) { return nil, nil }
func (forgetful) RemoteActors(context.Context, []vocab.ID) (map[vocab.ID]*db.RemoteActor, error) {
	return nil, nil
}
func (forgetful) RemoteActorByKey(context.Context, vocab.ID) (*db.RemoteActor, error) {
	return nil, nil
}
func (forgetful) RemoteActorByHandle(context.Context, string) (*db.RemoteActor, error) {
	return nil, nil
}
func (forgetful) SaveRemoteActor(context.Context, db.RemoteActor) error  { return nil }
func (forgetful) RenewRemoteActor(context.Context, db.RemoteActor) error { return nil }
func (forgetful) UseRemoteActor(context.Context, vocab.ID, time.Time, time.Time) (bool, error) {
	return true, nil
}
func (forgetful) MarkActorGone(context.Context, vocab.ID, time.Time) error { return nil }
func (forgetful) MarkActorStale(context.Context, vocab.ID) error           { return nil }

// failing is a forgetful store that cannot be written while err is set.
type failing struct {
	forgetful
	mu  sync.Mutex
	err error
}

func (f *failing) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failing) RenewRemoteActor(context.Context, db.RemoteActor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
