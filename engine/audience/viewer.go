package audience

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Viewer is an actor that wants to see an object or has stored it, with the actor's relation to
// the author of the object.
type Viewer struct {
	ID      vocab.ID   // empty if unknown
	Circles []vocab.ID // collections of followers that include the viewer
	ByGroup bool       // the author sent the object to a group that includes the viewer
	Sent    bool       // the author sent the object to the viewer's own inbox
	Blocked bool       // the author blocks the viewer
}

// MaySee reports whether the viewer may see the object. The author always may. Other viewers
// may not if the author blocks them. A local object (see IsLocal) may be seen by everybody on
// the author's server, and by nobody else, not even by an actor that it names. Any other object
// may be seen by everybody if it is public, and otherwise by the actors that it names, the
// members of the collections of followers that it names, and the actors that got it from its
// author.
func (a Audience) MaySee(v Viewer) bool {
	if v.ID != "" && v.ID.Same(a.author) {
		return true
	}
	if a.IsLocal() {
		return !v.Blocked && v.ID.SameOrigin(a.author)
	}
	return !v.Blocked && (v.ByGroup || v.Sent || a.IsPublic() || a.Names(v.ID) || slices.ContainsFunc(v.Circles, a.Names))
}

// Lists returns the ids that let a viewer find an object in the author's collections. The to or cc
// of the object must have at least one of these ids. An object that only names the viewer is not
// listed to the viewer, although the viewer may see it.
func Lists(author vocab.ID, v Viewer) []vocab.ID {
	all := append([]vocab.ID{vocab.Public}, v.Circles...)
	if v.ID.SameOrigin(author) {
		all = append(all, Here(author))
	}
	return all
}

// MayReplace reports whether the holder, an actor that has stored an object, may get the new
// version after an edit by the author. A holder outside of the new audience keeps the old version.
// If the new version addresses nobody, the audience of the old version decides. If the old version
// addresses nobody either, MayReplace returns true.
func MayReplace(before, after Audience, holder Viewer) bool {
	if !after.IsUnaddressed() {
		return after.MaySee(holder)
	}
	return before.IsUnaddressed() || before.MaySee(holder)
}

// Recipient is a local user who received another actor's post.
type Recipient struct {
	Viewer
	Known   bool // the user permits private messages of the author, by the rule insecure_dm
	Answers bool // the post answers an object that the user has stored and that the post's author may see
}

// IsLetterOfStranger reports whether a post is a private message to a user from an actor that has
// no permission to write one. It is false for an answer that addresses a collection in r.Circles.
// That is the collection of the user's followers, or of the followers of an actor that the user
// follows and that forwarded the answer. Such answers belong to their thread (ActivityPub §7.1.2).
func IsLetterOfStranger(post Audience, r Recipient) bool {
	inThread := r.Answers && slices.ContainsFunc(r.Circles, post.Names)
	return post.IsPrivate() && !r.Known && !inThread
}
