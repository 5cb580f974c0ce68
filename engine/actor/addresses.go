package actor

import (
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Addresses gives the ids, collections, pages and handles of this server's actors. All of them
// derive from the server's origin alone.
type Addresses struct{ origin, host string }

func newAddresses(origin string) Addresses {
	return Addresses{origin: origin, host: vocab.ID(origin).Host()}
}

// Origin returns the origin, with which every id of this server begins. It has no trailing
// slash.
func (a Addresses) Origin() string { return a.origin }

// Host returns the authority in ids and handles.
func (a Addresses) Host() string { return a.host }

// ID returns the id of u's actor.
func (a Addresses) ID(u vocab.Username) vocab.ID { return vocab.ID(a.origin + "/users/" + u.String()) }

// Inbox returns the inbox of u.
func (a Addresses) Inbox(u vocab.Username) vocab.ID { return a.ID(u) + "/inbox" }

// Outbox returns the outbox of u.
func (a Addresses) Outbox(u vocab.Username) vocab.ID { return a.ID(u) + "/outbox" }

// Followers returns the id of the collection of u's followers.
func (a Addresses) Followers(u vocab.Username) vocab.ID { return a.ID(u) + "/followers" }

// Following returns the collection of the actors that u follows.
func (a Addresses) Following(u vocab.Username) vocab.ID { return a.ID(u) + "/following" }

// Groups returns the prefix of the ids of u's groups. Nothing is served under it, because groups
// are shown to nobody.
func (a Addresses) Groups(u vocab.Username) vocab.ID { return a.ID(u) + "/groups" }

// Featured returns the id of the collection of the objects that u pinned.
func (a Addresses) Featured(u vocab.Username) vocab.ID { return a.ID(u) + "/featured" }

// KeyPackages returns the collection of the key packages of u's devices.
func (a Addresses) KeyPackages(u vocab.Username) vocab.ID { return a.ID(u) + "/keyPackages" }

// Messages returns the collection of the MLS messages that were sent to u.
func (a Addresses) Messages(u vocab.Username) vocab.ID { return a.ID(u) + "/messages" }

// Realtime returns the endpoint at which u receives signals about encrypted conversations.
func (a Addresses) Realtime(u vocab.Username) vocab.ID { return a.ID(u) + "/realtime" }

// Streams returns the id of the collection of u's streams. The ids of the streams begin with
// this id.
func (a Addresses) Streams(u vocab.Username) vocab.ID { return a.ID(u) + "/streams" }

// Page returns the address of the page about u.
func (a Addresses) Page(u vocab.Username) string { return a.origin + "/@" + u.String() }

// PostPage returns the address of the page that shows an object of a local user.
func (a Addresses) PostPage(object vocab.ID) string {
	u, rest, _ := a.Holder(object)
	return a.Page(u) + strings.TrimPrefix(rest, "/objects")
}

// ByPage returns the id of the actor or object whose page has the address. It returns any other
// address unchanged.
func (a Addresses) ByPage(address string) string {
	path, ok := strings.CutPrefix(string(vocab.IDOf(address)), a.origin+"/@")
	if !ok {
		return address
	}
	name, object, isObject := strings.Cut(path, "/")
	u, err := vocab.ParseUsername(name)
	switch {
	case err != nil || isObject && (object == "" || strings.ContainsAny(object, "/?#")):
		return address
	case !isObject:
		return string(a.ID(u))
	}
	return string(a.ID(u)) + "/objects/" + object
}

// TagPage returns the page of u's posts with a tag.
func (a Addresses) TagPage(u vocab.Username, tag string) string {
	return a.Page(u) + "/tags/" + url.PathEscape(strings.ToLower(tag))
}

// HrefOf returns the target of a link or hashtag in a text by u. The result is empty for a
// handle, because a handle must be looked up.
func (a Addresses) HrefOf(u vocab.Username, s vocab.Span) string {
	switch s.Kind {
	case vocab.LinkSpan:
		return s.Text
	case vocab.HashtagSpan:
		return a.TagPage(u, s.Text[1:])
	}
	return ""
}

// Picture returns the address at which a picture of u is served.
func (a Addresses) Picture(u vocab.Username, name string) vocab.ID {
	return a.ID(u) + "/media/" + vocab.ID(name)
}

// SharedInbox returns the inbox that all users share (ActivityPub §7.1.3).
func (a Addresses) SharedInbox() vocab.ID { return vocab.ID(a.origin + "/inbox") }

// InstanceID returns the id of the instance actor, which signs requests that are not made in a
// user's name.
func (a Addresses) InstanceID() vocab.ID { return vocab.ID(a.origin + "/actor") }

// Handle returns the handle of u, such as @alice@example.org.
func (a Addresses) Handle(u vocab.Username) string { return "@" + u.String() + "@" + a.host }

// NewActivityID returns a new id for an activity of u. The id is greater than every earlier one
// that this process has made for u.
func (a Addresses) NewActivityID(u vocab.Username) vocab.ID {
	return a.ID(u) + "/activities/" + vocab.ID(uuid.Must(uuid.NewV7()).String())
}

// NewObjectID returns a new id for an object of u. The id is greater than every earlier one that
// this process has made for u.
func (a Addresses) NewObjectID(u vocab.Username) vocab.ID {
	return a.ID(u) + "/objects/" + vocab.ID(uuid.Must(uuid.NewV7()).String())
}

// Replies returns the collection of the public replies to a local user's object.
func (a Addresses) Replies(object vocab.ID) vocab.ID { return object + "/replies" }

// Thread returns the collection of the public objects in the thread that a local user's object
// begins (FEP-7888).
func (a Addresses) Thread(object vocab.ID) vocab.ID { return object + "/context" }

// IsLocal reports whether id has this server's origin, which means that this server has assigned
// id or could assign it.
func (a Addresses) IsLocal(id vocab.ID) bool { return id.Origin() == a.origin }

// Holder returns the user whose actor id equals id or is the beginning of id. The result rest is
// the part of id after the actor id. ok is false if id has no valid user name at that place.
func (a Addresses) Holder(id vocab.ID) (u vocab.Username, rest string, ok bool) {
	path, ok := strings.CutPrefix(string(id.Canonical()), a.origin+"/users/")
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

// Owner returns the user of the actor that id names.
func (a Addresses) Owner(id vocab.ID) (vocab.Username, bool) { return a.ownerOfPath(id, "") }

// InboxOwner returns the user of the personal inbox that id names.
func (a Addresses) InboxOwner(id vocab.ID) (vocab.Username, bool) { return a.ownerOfPath(id, "/inbox") }

func (a Addresses) ownerOfPath(id vocab.ID, want string) (vocab.Username, bool) {
	u, rest, ok := a.Holder(id)
	if !ok || rest != want {
		return vocab.Username{}, false
	}
	return u, true
}

// isOwn reports whether id has the host of this server, with any scheme. This server sends no
// requests to itself.
func (a Addresses) isOwn(id vocab.ID) bool { return id.Host() == a.host }
