package actor

import (
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// remembered is how many actors, keys or failures of each kind are kept in memory.
const remembered = 4096

// Profiles is where the people behind local actors describe themselves.
type Profiles interface {
	User(u vocab.Username) registry.User
}

// Local is the actors of this server: their ids, documents and handles. It opens no database, so
// it answers for users that are not there, too: whether they are is the caller's to know.
type Local struct {
	origin, host, software string
	keys                   *Keyring
	profiles               Profiles
	documents              *lru[vocab.Username, *described]
	pages                  bool
}

// NewLocal returns the actors at origin, such as "https://example.org". software names the program
// to peers.
func NewLocal(origin string, keys *Keyring, profiles Profiles, software string) *Local {
	return &Local{origin: origin, host: vocab.ID(origin).Host(), software: software, keys: keys, profiles: profiles,
		documents: newLRU[vocab.Username](remembered, 64<<20, func(d *described) int { return len(d.actor.Raw) })}
}

// OfferPages says that people find pages about users and their public posts here. It is called
// before anything asks for an actor.
func (l *Local) OfferPages() { l.pages = true }

// HasPages reports whether there are pages for people.
func (l *Local) HasPages() bool { return l.pages }

// Origin returns what every id here begins with, without a slash at its end.
func (l *Local) Origin() string { return l.origin }

// Host returns the authority in ids and handles.
func (l *Local) Host() string { return l.host }

// ID returns the id of u's actor.
func (l *Local) ID(u vocab.Username) vocab.ID { return vocab.ID(l.origin + "/users/" + u.String()) }

// Inbox returns the inbox of u.
func (l *Local) Inbox(u vocab.Username) vocab.ID { return l.ID(u) + "/inbox" }

// Outbox returns the outbox of u.
func (l *Local) Outbox(u vocab.Username) vocab.ID { return l.ID(u) + "/outbox" }

// Followers returns the collection of those who follow u.
func (l *Local) Followers(u vocab.Username) vocab.ID { return l.ID(u) + "/followers" }

// Following returns the collection of the actors that u follows.
func (l *Local) Following(u vocab.Username) vocab.ID { return l.ID(u) + "/following" }

// Groups is what the ids of u's groups begin with. There is nothing behind them: groups are shown
// to nobody.
func (l *Local) Groups(u vocab.Username) vocab.ID { return l.ID(u) + "/groups" }

// Featured returns the id of the collection of what u shows first.
func (l *Local) Featured(u vocab.Username) vocab.ID { return l.ID(u) + "/featured" }

// KeyPackages returns the collection of the key packages of u's devices.
func (l *Local) KeyPackages(u vocab.Username) vocab.ID { return l.ID(u) + "/keyPackages" }

// Messages returns the collection of the MLS messages that u was sent.
func (l *Local) Messages(u vocab.Username) vocab.ID { return l.ID(u) + "/messages" }

// Realtime returns where u takes signals about encrypted conversations.
func (l *Local) Realtime(u vocab.Username) vocab.ID { return l.ID(u) + "/realtime" }

// Streams returns the id of the collection of u's streams. Their ids begin with it.
func (l *Local) Streams(u vocab.Username) vocab.ID { return l.ID(u) + "/streams" }

// Page returns the address of the page about u.
func (l *Local) Page(u vocab.Username) string { return l.origin + "/@" + u.String() }

// PostPage returns the address of the page of an object of a user's.
func (l *Local) PostPage(object vocab.ID) string {
	u, rest, _ := l.Holder(object)
	return l.Page(u) + strings.TrimPrefix(rest, "/objects")
}

// TagPage returns the page of u's posts with a tag.
func (l *Local) TagPage(u vocab.Username, tag string) string {
	return l.Page(u) + "/tags/" + url.PathEscape(strings.ToLower(tag))
}

// HrefOf returns where an address or hashtag in a text of u's leads; empty for handles, which have
// to be looked up.
func (l *Local) HrefOf(u vocab.Username, s vocab.Span) string {
	switch s.Kind {
	case vocab.LinkSpan:
		return s.Text
	case vocab.HashtagSpan:
		return l.TagPage(u, s.Text[1:])
	}
	return ""
}

// MovedTo returns the account that u has become; empty for none.
func (l *Local) MovedTo(u vocab.Username) vocab.ID { return l.profiles.User(u).Profile.MovedTo }

// Picture returns where a picture of u's is shown.
func (l *Local) Picture(u vocab.Username, name string) vocab.ID {
	return l.ID(u) + "/media/" + vocab.ID(name)
}

// SharedInbox returns the inbox of all users together (ActivityPub §7.1.3).
func (l *Local) SharedInbox() vocab.ID { return vocab.ID(l.origin + "/inbox") }

// InstanceID returns the id of the instance actor, which signs what no user asks for.
func (l *Local) InstanceID() vocab.ID { return vocab.ID(l.origin + "/actor") }

// Handle returns what people write to name u, such as @alice@example.org.
func (l *Local) Handle(u vocab.Username) string { return "@" + u.String() + "@" + l.host }

// NewActivityID returns an id for an activity of u, greater than those before it.
func (l *Local) NewActivityID(u vocab.Username) vocab.ID {
	return l.ID(u) + "/activities/" + vocab.ID(uuid.Must(uuid.NewV7()).String())
}

// NewObjectID returns an id for an object of u, greater than those before it.
func (l *Local) NewObjectID(u vocab.Username) vocab.ID {
	return l.ID(u) + "/objects/" + vocab.ID(uuid.Must(uuid.NewV7()).String())
}

// Replies returns the collection of the public answers to an object of a user's.
func (l *Local) Replies(object vocab.ID) vocab.ID { return object + "/replies" }

// Thread returns the collection of what is public in the thread that an object of a user's begins
// (FEP-7888).
func (l *Local) Thread(object vocab.ID) vocab.ID { return object + "/context" }

// IsLocal reports whether id was, or could have been, given here.
func (l *Local) IsLocal(id vocab.ID) bool { return id.Origin() == l.origin }

// Holder returns the user at or under whose actor id lies, and the rest of id.
func (l *Local) Holder(id vocab.ID) (u vocab.Username, rest string, ok bool) {
	path, ok := strings.CutPrefix(string(id.Canonical()), l.origin+"/users/")
	if !ok {
		return vocab.Username{}, "", false
	}
	end := strings.IndexAny(path, "/?#")
	if end < 0 {
		end = len(path)
	}
	u, err := vocab.ParseUsername(path[:end])
	if err != nil {
		return vocab.Username{}, "", false
	}
	return u, path[end:], true
}

// Owner returns the user whose actor's id this is.
func (l *Local) Owner(id vocab.ID) (vocab.Username, bool) { return l.ownerOfPath(id, "") }

// InboxOwner returns the user whose personal inbox this is.
func (l *Local) InboxOwner(id vocab.ID) (vocab.Username, bool) { return l.ownerOfPath(id, "/inbox") }

func (l *Local) ownerOfPath(id vocab.ID, want string) (vocab.Username, bool) {
	u, rest, ok := l.Holder(id)
	if !ok || rest != want {
		return vocab.Username{}, false
	}
	return u, true
}

// isOwn reports whether a request for id would reach this server, under whatever scheme: it is
// never made.
func (l *Local) isOwn(id vocab.ID) bool { return id.Host() == l.host }

// actorAt returns the local actor of that id.
func (l *Local) actorAt(id vocab.ID) (*vocab.Actor, error) {
	if u, ok := l.Owner(id); ok {
		return l.Actor(u)
	}
	if id.Same(l.InstanceID()) {
		return l.instanceActor()
	}
	return nil, fault.New(fault.NotFound, "there is no such actor here")
}
