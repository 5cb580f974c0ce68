package feed

import (
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isMuted reports whether the user whose actor is me has muted an entry. It is asked behind the
// cache: a change in the user's file holds for the next page. Nobody mutes words of their own.
func isMuted(e Shown, mutes registry.Moderation, me vocab.ID) bool {
	if mutes.HidesAny(e.Voices, me) {
		return true
	}
	if !mutes.HasKeywords() || e.authorOrActor().Same(me) || e.Object == nil {
		return false
	}
	d, err := vocab.ParseDoc(e.Object)
	return err == nil && mutes.HidesWords(d) // an object that cannot be read says no word
}
