package audience

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Viewer is an actor that wants to see an object or holds it, with its relation to the author.
type Viewer struct {
	ID      vocab.ID   // empty if unknown
	Circles []vocab.ID // collections of followers that include the viewer
	ByGroup bool       // the author sent the object to a group that includes the viewer
	Sent    bool       // the author sent the object to the viewer's own inbox
	Blocked bool       // the author blocks the viewer
}

// MaySee reports whether the viewer may see the object. Its author always may. Other viewers may
// not if the author blocks them. A local object may be seen by everybody on the author's server,
// and by nobody else, even if named. Any other object may be seen by everybody if it is public,
// and otherwise by the actors that it names, the members of the collections of followers that it
// names, and the actors that got it from its author.
func (a Audience) MaySee(v Viewer) bool {
	if v.ID != "" && v.ID.Same(a.author) {
		return true
	}
	if a.IsLocal() {
		return !v.Blocked && v.ID.SameOrigin(a.author)
	}
	return !v.Blocked && (v.ByGroup || v.Sent || a.IsPublic() || a.Names(v.ID) || slices.ContainsFunc(v.Circles, a.Names))
}

// MayList reports whether the viewer sees the object in the author's collections. An object that
// only names the viewer is listed to nobody except the author, although the viewer may see it.
func (a Audience) MayList(v Viewer) bool {
	if v.ID != "" && v.ID.Same(a.author) {
		return true
	}
	return !v.Blocked && slices.ContainsFunc(Lists(a.author, v), func(id vocab.ID) bool { return slices.Contains(a.to.To, id) || slices.Contains(a.to.Cc, id) })
}

// Lists returns ids. A viewer sees an object in the author's collections if its to or cc has at
// least one of them.
func Lists(author vocab.ID, v Viewer) []vocab.ID {
	all := append([]vocab.ID{vocab.Public}, v.Circles...)
	if v.ID.SameOrigin(author) {
		all = append(all, Here(author))
	}
	return all
}

// MayReplace reports whether the holder of an object may get the version that its author has
// changed. Holders outside of a narrowed audience keep the old version. An edit that addresses
// nobody does not change the audience.
func MayReplace(before, after Audience, holder Viewer) bool {
	if !after.IsUnaddressed() {
		return after.MaySee(holder)
	}
	return before.IsUnaddressed() || before.MaySee(holder)
}

// Recipient is a local user who received another actor's post.
type Recipient struct {
	Viewer
	Known   bool // the user permits private messages of the author (insecure_dm)
	Answers bool // the post answers an object that the user holds and the post's author may see
}

// IsLetterOfStranger reports whether a post is a private message to a user from an actor that
// has no permission to write one. It is false for an answer that addresses the followers of the
// user, or of a followed actor who forwards it: such an answer belongs to its thread
// (ActivityPub §7.1.2).
func IsLetterOfStranger(post Audience, r Recipient) bool {
	inThread := r.Answers && slices.ContainsFunc(r.Circles, post.Names)
	return post.IsPrivate() && !r.Known && !inThread
}
