package feed

import (
	"slices"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// isMuted reports whether the user whose actor is me has muted an entry. It is asked behind the
// cache: a change in the user's file holds for the next page. Nobody mutes words of their own.
func isMuted(e Shown, mutes registry.Moderation, me vocab.ID) bool {
	if slices.ContainsFunc(e.Voices, func(id vocab.ID) bool { return !id.Same(me) && mutes.HidesActor(id) }) {
		return true
	}
	if !mutes.HasKeywords() || e.authorOrActor().Same(me) || e.Object == nil {
		return false
	}
	d, err := vocab.ParseDoc(e.Object)
	return err == nil && slices.ContainsFunc(vocab.WordsOf(d), mutes.HidesText) // an object that cannot be read says no word
}
