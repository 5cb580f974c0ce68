// Package audience makes the decisions that depend on the addressing of an activity or object:
// whether a viewer may see it, which local users it concerns, which of the users who have
// stored an object get its edit, and whether it is a stranger's private message. No other
// package decides by to, cc, audience, bto or bcc. docs/audience.md shows the decisions as
// tables, and db/user/audience.go makes the same decisions in SQL.
//
// The functions use only their arguments: no database and no network.
package audience

import (
	"maps"
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The visibilities that clients see. The visibility of a post is the widest audience that the
// addressing of the post names.
const (
	Public    = "public"    // everybody, and it may be listed publicly
	Unlisted  = "unlisted"  // everybody, but it is not listed
	Local     = "local"     // only actors of the author's server; it is never sent elsewhere
	Followers = "followers" // the author's followers, and the actors that are named
	Direct    = "direct"    // only the actors that are named
)

// Visibilities lists all visibilities, the widest first.
var Visibilities = []string{Public, Unlisted, Local, Followers, Direct}

// Audience is the addressing of an activity or object, with its author.
type Audience struct {
	author    vocab.ID
	followers vocab.ID // the collection of the author's followers; empty if unknown
	to        vocab.Addressing
}

// Of returns the audience of an addressing. If the collection of the author's followers is
// unknown (empty), nothing counts as addressed to followers; this is the most private reading.
func Of(to vocab.Addressing, author, followers vocab.ID) Audience {
	return Audience{author: author, followers: followers, to: to}
}

// OfActivity returns the audience of an activity. The parameter followers is the collection of the
// actor's followers.
func OfActivity(a *vocab.Activity, followers vocab.ID) Audience {
	return Of(a.Addressing, a.Actor, followers)
}

// OfObject returns the audience of an object. The parameter followers is the collection of the
// author's followers.
func OfObject(o *vocab.Object, followers vocab.ID) Audience {
	return Of(o.Addressing, o.AttributedTo, followers)
}

// With returns the audience extended by another addressing.
func (a Audience) With(to vocab.Addressing) Audience {
	a.to = a.to.With(to)
	return a
}

// IsPublic reports whether everybody (vocab.Public) is addressed in to or cc. An addressing of
// everybody in bto, bcc or audience does not count.
func (a Audience) IsPublic() bool { return IsPublic(a.to) }

// IsPublic reports whether an addressing names everybody in to or cc.
func IsPublic(to vocab.Addressing) bool {
	return IsListed(to) || slices.Contains(to.Cc, vocab.Public)
}

// IsListed reports whether an addressing names everybody in to. If it does, the post may be
// listed and sent to relays.
func IsListed(to vocab.Addressing) bool { return slices.Contains(to.To, vocab.Public) }

// IncludesFollowers reports whether the followers of the author are addressed.
func (a Audience) IncludesFollowers() bool { return Names(a.to, a.followers) }

// Here returns the id by which an author addresses everybody on the author's own server, or ""
// if the author's id has no server. If an author of another server addresses that id, it means
// nobody.
func Here(author vocab.ID) vocab.ID {
	origin := author.Origin()
	if origin == "" {
		return ""
	}
	return vocab.ID(origin + "/#Public")
}

// IsLocal reports whether the audience is everybody on the author's server, and nobody
// elsewhere.
func (a Audience) IsLocal() bool { return !a.IsPublic() && Names(a.to, Here(a.author)) }

// ReachesFollowers reports whether the audience includes followers of the author: all of them,
// or those on the author's server.
func (a Audience) ReachesFollowers() bool { return a.IncludesFollowers() || a.IsLocal() }

// IsPrivate reports whether only named actors are addressed: not everybody, not everybody on the
// author's server, and not the author's followers.
func (a Audience) IsPrivate() bool { return !a.IsPublic() && !a.ReachesFollowers() }

// IsUnaddressed reports whether the addressing is empty.
func (a Audience) IsUnaddressed() bool { return IsUnaddressed(a.to) }

// IsUnaddressed reports whether an addressing is empty.
func IsUnaddressed(to vocab.Addressing) bool { return len(to.All()) == 0 }

// Names reports whether id is addressed, including in bto and bcc.
func (a Audience) Names(id vocab.ID) bool { return Names(a.to, id) }

// Names reports whether an addressing names id, including in bto and bcc. The empty id is never
// named.
func Names(to vocab.Addressing, id vocab.ID) bool {
	return NamesOpenly(to, id) || contains(to.Bto, id) || contains(to.Bcc, id)
}

// NamesOpenly reports whether an addressing names id in to, cc or audience.
func NamesOpenly(to vocab.Addressing, id vocab.ID) bool {
	return contains(to.To, id) || contains(to.Cc, id) || contains(to.Audience, id)
}

func contains(ids []vocab.ID, id vocab.ID) bool {
	same := id.Canonical()
	return id != "" && slices.ContainsFunc(ids, func(named vocab.ID) bool { return named == same || named.Canonical() == same })
}

// Counterpart returns the only id that an addressing names, other than the id in the parameter
// besides. It returns "" if the addressing names no other id, or more than one.
func Counterpart(to vocab.Addressing, besides vocab.ID) (one vocab.ID) {
	for _, id := range to.All() {
		switch {
		case id.Same(besides) || id.Same(one):
		case one != "":
			return ""
		default:
			one = id.Canonical()
		}
	}
	return one
}

// Open returns the ids that are addressed in to, cc and audience.
func Open(to vocab.Addressing) []vocab.ID { return slices.Concat(to.To, to.Cc, to.Audience) }

// IsHidden reports whether an addressing names its recipients only in bto and bcc.
func IsHidden(to vocab.Addressing) bool { return len(Open(to)) == 0 && !IsUnaddressed(to) }

// Communities returns the ids that a post names in audience, each once, if everybody may see the
// post. The post belongs to the communities, that is, the Group actors, among these ids
// (FEP-1b12). The ids of everybody, the author and the author's followers are left out.
func (a Audience) Communities() (ids []vocab.ID) {
	if !a.IsPublic() {
		return nil
	}
	for _, id := range a.to.Audience {
		if id != vocab.Public && !id.Same(a.author) && !id.Same(a.followers) && !contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Visibility returns the visibility of the audience. An audience that consists only of another
// actor's followers is Direct.
func (a Audience) Visibility() string {
	switch {
	case IsListed(a.to):
		return Public
	case a.IsPublic():
		return Unlisted
	case a.IsLocal():
		return Local
	case a.IncludesFollowers():
		return Followers
	}
	return Direct
}

// openFields are the members of a document that name its recipients openly.
var openFields = []string{"to", "cc", "audience"}

// CopyOpen copies the open addressing of one document to another.
func CopyOpen(to, from vocab.Doc) {
	for _, field := range openFields {
		if v, there := from[field]; there {
			to[field] = v
		}
	}
}

// CopyStored copies the open addressing of one stored document to another, and the mark of Narrow.
func CopyStored(to, from vocab.Doc) {
	CopyOpen(to, from)
	if IsNarrowed(from) {
		Mark(to)
	}
}

// Mark marks a stored document that is addressed to its author alone, and was public, for
// IsNarrowed. A letter to a group may be addressed to its author alone, too, so the mark is needed.
func Mark(d vocab.Doc) { d[vocab.Narrowed] = true }

// Narrow returns a copy of a public document that is addressed to its author alone, and marked by
// Mark.
func Narrow(d vocab.Doc, author vocab.ID) vocab.Doc {
	d = maps.Clone(d)
	for _, field := range openFields {
		delete(d, field)
	}
	d["to"] = []any{string(author)}
	Mark(d)
	return d
}

// IsNarrowed reports whether a stored document was public, and its author has made it less public
// for others than the user.
func IsNarrowed(d vocab.Doc) bool { return d[vocab.Narrowed] == true }
