package actor

import (
	"context"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// remembered is the greatest number of entries in each cache of actors, keys, documents, handles
// or failures, and of stale actors.
const remembered = 4096

// Profiles returns the configuration of local users, which includes their profiles.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Local serves the actors of this server: their addresses, documents and proofs. It opens no
// database, so it cannot tell whether a user exists. It even returns addresses of a user that
// does not exist. The caller must check that the user exists.
type Local struct {
	Addresses
	software  string
	keys      *Keyring
	profiles  Profiles
	documents *lru[vocab.Username, *described]
	pages     bool
}

// NewLocal returns the actors at origin, such as "https://example.org". The parameter software
// names the program to peers.
func NewLocal(origin string, keys *Keyring, profiles Profiles, software string) *Local {
	return &Local{Addresses: newAddresses(origin), software: software, keys: keys, profiles: profiles,
		documents: newLRU[vocab.Username](remembered, 64<<20, func(d *described) int { return len(d.actor.Raw) })}
}

// OfferPages declares that this server has web pages about users and their public posts. It must
// be called before the first document of an actor is built.
func (l *Local) OfferPages() { l.pages = true }

// HasPages reports whether OfferPages was called.
func (l *Local) HasPages() bool { return l.pages }

// MovedTo returns the account that u has moved to, or "" if u has not moved.
func (l *Local) MovedTo(u vocab.Username) vocab.ID { return l.profiles.User(u).Profile.MovedTo }

// actorAt returns the local actor that id names.
func (l *Local) actorAt(id vocab.ID) (*vocab.Actor, error) {
	if u, ok := l.Owner(id); ok {
		return l.Actor(u)
	}
	if id.Same(l.InstanceID()) {
		return l.instanceActor()
	}
	return nil, fault.New(fault.NotFound, "there is no such actor here")
}

// localActor returns the local actor that id names. The fault is Unavailable, and not NoUser, for
// a user who is here but whose keys are missing, because the disk that has them may be away.
func (r *Resolver) localActor(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	a, err := r.Local.actorAt(id)
	if fault.KindOf(err) != fault.NoUser {
		return a, err
	}
	u, _ := r.Local.Owner(id)
	state, unread := r.Users.State(ctx, u)
	switch {
	case state == instance.UserActive, state == instance.UserSuspended:
		return nil, unreadableKeys(err)
	case unread != nil && fault.KindOf(unread) != fault.NoUser:
		return nil, unread
	}
	return nil, err
}
