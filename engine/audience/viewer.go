package audience

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Viewer is an actor who wants to see something or holds it, and how it stands to the author.
type Viewer struct {
	ID      vocab.ID   // empty: nobody knows who asks
	Circles []vocab.ID // collections of followers in which the viewer is
	ByGroup bool       // the author sent it to a group in which the viewer is
	Sent    bool       // the author sent it to the viewer's own inbox
	Blocked bool       // the author blocks the viewer
}

// MaySee reports whether the viewer may see it: its author, and, unless the author blocks them,
// everybody when it is public, everybody of the author's server when it is local, whoever it names,
// who is in a collection of followers that it names, and who got it from its author. Nothing local
// is for anybody of another server, whoever is named.
func (a Audience) MaySee(v Viewer) bool {
	if v.ID != "" && v.ID.Same(a.author) {
		return true
	}
	if a.IsLocal() {
		return !v.Blocked && v.ID.SameOrigin(a.author)
	}
	return !v.Blocked && (v.ByGroup || v.Sent || a.IsPublic() || a.Names(v.ID) || slices.ContainsFunc(v.Circles, a.Names))
}

// MayList reports whether the viewer finds it in the author's collections: nobody but the author
// finds there what names the viewer alone, however much the viewer may read it.
func (a Audience) MayList(v Viewer) bool {
	if v.ID != "" && v.ID.Same(a.author) {
		return true
	}
	return !v.Blocked && slices.ContainsFunc(Lists(a.author, v), func(id vocab.ID) bool { return slices.Contains(a.to.To, id) || slices.Contains(a.to.Cc, id) })
}

// Lists returns what must be addressed in to or cc by what a viewer finds in an author's
// collections.
func Lists(author vocab.ID, v Viewer) []vocab.ID {
	all := append([]vocab.ID{vocab.Public}, v.Circles...)
	if v.ID.SameOrigin(author) {
		all = append(all, Here(author))
	}
	return all
}

// MayReplace reports whether the holder of something may have it as its author changed it. An edit
// that narrows the audience leaves those who are outside of it with what they have. One that
// addresses nobody changes no audience.
func MayReplace(before, after Audience, holder Viewer) bool {
	if !after.IsUnaddressed() {
		return after.MaySee(holder)
	}
	return before.IsUnaddressed() || before.MaySee(holder)
}

// Recipient is a local user who received somebody else's post.
type Recipient struct {
	Viewer
	Known   bool // the user permits the author to write in private (insecure_dm)
	Answers bool // the post answers something that the user holds and its author may see
}

// IsLetterOfStranger reports whether a post is a private message to a user by an actor without the
// permission to write one. An answer for the followers of the user, or of a followed actor who
// forwards it, belongs to the thread that it answers and is none (ActivityPub §7.1.2).
func IsLetterOfStranger(post Audience, r Recipient) bool {
	inThread := r.Answers && slices.ContainsFunc(r.Circles, post.Names)
	return post.IsPrivate() && !r.Known && !inThread
}
