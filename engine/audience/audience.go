// Package audience decides who an activity or object is for: whether a viewer may see it, which
// local users it reaches, who may have the new words of an edit, and what is a private message of a
// stranger. Nothing else reads to, cc, audience, bto and bcc to decide anything; docs/audience.md
// shows the decisions, and db holds their SQL form in one file.
//
// It is pure: it asks no database and no server.
package audience

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The visibilities, as clients are told them: the widest that the addressing says.
const (
	Public    = "public"    // everybody, and it may be listed
	Unlisted  = "unlisted"  // everybody who comes across it
	Local     = "local"     // actors of its author's server, which it never leaves
	Followers = "followers" // those who follow its author, and whoever is named
	Direct    = "direct"    // whoever is named
)

// Visibilities are all of them, the widest first.
var Visibilities = []string{Public, Unlisted, Local, Followers, Direct}

// Audience is who an activity or object is for.
type Audience struct {
	author    vocab.ID
	followers vocab.ID // the collection of the author's followers; empty when nobody knows it
	to        vocab.Addressing
}

// Of returns the audience that an addressing says. With the collection of the author's followers
// unknown, nothing counts as being for followers: the most private that it can be.
func Of(to vocab.Addressing, author, followers vocab.ID) Audience {
	return Audience{author: author, followers: followers, to: to}
}

// OfActivity returns the audience of an activity whose actor has these followers.
func OfActivity(a *vocab.Activity, followers vocab.ID) Audience {
	return Of(a.Addressing, a.Actor, followers)
}

// OfObject returns the audience of an object whose author has these followers.
func OfObject(o *vocab.Object, followers vocab.ID) Audience {
	return Of(o.Addressing, o.AttributedTo, followers)
}

// With returns an audience that is for those of another addressing, too.
func (a Audience) With(to vocab.Addressing) Audience {
	a.to.To, a.to.Cc = slices.Concat(a.to.To, to.To), slices.Concat(a.to.Cc, to.Cc)
	a.to.Audience = slices.Concat(a.to.Audience, to.Audience)
	a.to.Bto, a.to.Bcc = slices.Concat(a.to.Bto, to.Bto), slices.Concat(a.to.Bcc, to.Bcc)
	return a
}

// IsPublic reports whether everybody is addressed, in to or cc. Hidden recipients and audience make
// nothing public.
func (a Audience) IsPublic() bool { return IsPublic(a.to) }

// IsPublic reports whether an addressing is for everybody, whoever wrote it.
func IsPublic(to vocab.Addressing) bool {
	return IsListed(to) || slices.Contains(to.Cc, vocab.Public)
}

// IsListed reports whether an addressing is for everybody, and may be listed and sent to relays.
func IsListed(to vocab.Addressing) bool { return slices.Contains(to.To, vocab.Public) }

// IncludesFollowers reports whether the followers of the author are addressed.
func (a Audience) IncludesFollowers() bool { return Names(a.to, a.followers) }

// Here returns how everybody on the server of an author is addressed; empty for one without a
// server. Addressed by an author of another server it means nobody.
func Here(author vocab.ID) vocab.ID {
	origin := author.Origin()
	if origin == "" {
		return ""
	}
	return vocab.ID(origin + "/#Public")
}

// IsLocal reports whether it is for everybody on its author's server, and for nobody elsewhere.
func (a Audience) IsLocal() bool { return !a.IsPublic() && Names(a.to, Here(a.author)) }

// ReachesFollowers reports whether it is for the followers of the author: all of them, or those on
// its server.
func (a Audience) ReachesFollowers() bool { return a.IncludesFollowers() || a.IsLocal() }

// IsPrivate reports whether neither everybody, here or everywhere, nor the followers of the author
// are addressed.
func (a Audience) IsPrivate() bool { return !a.IsPublic() && !a.ReachesFollowers() }

// IsUnaddressed reports whether nobody is addressed at all.
func (a Audience) IsUnaddressed() bool { return len(a.to.All()) == 0 }

// Names reports whether id is addressed, openly or hidden.
func (a Audience) Names(id vocab.ID) bool { return Names(a.to, id) }

// Names reports whether an addressing names id, openly or hidden. Nothing names the empty id.
func Names(to vocab.Addressing, id vocab.ID) bool {
	return NamesOpenly(to, id) || contains(to.Bto, id) || contains(to.Bcc, id)
}

// NamesOpenly reports whether an addressing names id where everybody reads it.
func NamesOpenly(to vocab.Addressing, id vocab.ID) bool {
	return contains(to.To, id) || contains(to.Cc, id) || contains(to.Audience, id)
}

func contains(ids []vocab.ID, id vocab.ID) bool {
	same := id.Canonical()
	return id != "" && slices.ContainsFunc(ids, func(named vocab.ID) bool { return named == same || named.Canonical() == same })
}

// Counterpart returns the one actor besides somebody that an addressing names, empty when there is
// none or more than one.
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

// Open returns everybody who is addressed where all can read it.
func Open(to vocab.Addressing) []vocab.ID { return slices.Concat(to.To, to.Cc, to.Audience) }

// Visibility returns the word for the audience. One that is only for the followers of somebody else
// is Direct.
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
