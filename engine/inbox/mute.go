package inbox

import (
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isMuted reports whether the user does not want to see the activity, because the user has
// muted its actor, an author of its object, or a word in its object. A post inside an activity
// that a Group announces is not checked here; it is hidden when it is read.
func (p *applier) isMuted(x *applying) bool {
	mutes := p.Profiles.User(x.User).Moderation
	doc, voices := x.Activity.Object.Doc, []vocab.ID{x.Actor.ID}
	if o := handler.ObjectOf(x.Activity, x.Fetched); o != nil {
		doc, voices = o.Doc, append(voices, o.Authors()...)
	}
	return mutes.HidesAny(voices, x.Me) || !x.Mine(x.Activity.Object.ID) && mutes.HidesWords(doc)
}
