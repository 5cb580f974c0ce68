package feed

import (
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isMuted reports whether the user has muted an entry. The parameter me is the id of the user's
// actor. isMuted is called after the cache was read, so a change in the user's file takes effect
// on the next page. A muted keyword does not hide what the user wrote.
func isMuted(e Shown, mutes registry.Moderation, me vocab.ID) bool {
	if mutes.HidesAny(e.Voices, me) {
		return true
	}
	if !mutes.HasKeywords() || e.authorOrActor().Same(me) || e.Object == "" {
		return false
	}
	d, err := vocab.ParseDoc([]byte(e.Object))
	return err == nil && mutes.HidesWords(d) // an object that cannot be parsed has no words
}
