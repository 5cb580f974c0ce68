package actor

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// forgetful is a store that stores nothing. It is for tests of the cache in memory.
type forgetful struct{}

func (forgetful) Find(context.Context, vocab.ID) (*instance.RemoteActor, error) {
	return nil, nil
}
func (forgetful) FindAll(context.Context, []vocab.ID) (map[vocab.ID]*instance.RemoteActor, error) {
	return nil, nil
}
func (forgetful) FindByKey(context.Context, vocab.ID) (*instance.RemoteActor, error) {
	return nil, nil
}
func (forgetful) FindByHandle(context.Context, string) (*instance.RemoteActor, error) {
	return nil, nil
}
func (forgetful) Save(context.Context, instance.RemoteActor) error  { return nil }
func (forgetful) Renew(context.Context, instance.RemoteActor) error { return nil }
func (forgetful) NoteUse(context.Context, vocab.ID, time.Time, time.Time) (bool, error) {
	return true, nil
}
func (forgetful) MarkGone(context.Context, vocab.ID, time.Time) error { return nil }
func (forgetful) MarkStale(context.Context, vocab.ID) error           { return nil }

// nobody is a list of users without any user.
type nobody struct{}

func (nobody) State(context.Context, vocab.Username) (string, error) {
	return "", fault.New(fault.NoUser, "there is no such user")
}

// failing is a forgetful store. Its Renew fails while err is set.
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

func (f *failing) Renew(context.Context, instance.RemoteActor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
