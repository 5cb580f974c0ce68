package inbox

import (
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isMuted reports whether the user does not want to see the activity, because the user has
// muted its actor, the author of its object, or a word in its object. A post inside an activity
// that a Group announces is not checked here; it is hidden when it is read.
func (p *applier) isMuted(x *applying) bool {
	mutes := p.Profiles.User(x.User).Moderation
	if mutes.HidesActor(x.Actor.ID) {
		return true
	}
	doc, author := x.Activity.Object.Doc, vocab.ID("")
	if o := handler.ObjectOf(x.Activity, x.Fetched); o != nil {
		doc, author = o.Doc, o.AttributedTo
	}
	if author != "" && mutes.HidesActor(author) {
		return true
	}
	return !x.Mine(x.Activity.Object.ID) && mutes.HidesWords(doc)
}
