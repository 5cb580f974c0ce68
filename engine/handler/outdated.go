package handler

import (
	"time"

	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// provenTime is the longest time for which a proof (FEP-8b32) shows that the covered activity or
// object still stands.
const provenTime = 48 * time.Hour

// IsOld reports whether a proof is so old that its author may have deleted, changed or taken back
// the proven activity or object since. The proof remains valid all the same, and anybody who has
// the activity can pass it on for ever.
func IsOld(made, now time.Time) bool { return now.Sub(made) > provenTime }

// IsOutdated reports whether the proof of an activity that another actor passes on is too old to
// be believed. Only posts, edits, boosts and pins can be outdated, because the Delete or Undo that
// took them back may never have come to this server. The author's server shows nobody an activity
// that is not public, so the proof of such an activity is believed at any age.
func IsOutdated(a *vocab.Activity, made, now time.Time) bool {
	return (Brings(a.Type) || a.Type == vocab.Add) && IsOld(made, now) && isPublic(a)
}

// isPublic reports whether an activity or the object that it embeds is public. It also returns
// true if the addressing of the object cannot be read.
func isPublic(a *vocab.Activity) bool {
	ofObject, err := vocab.AddressingOf(a.Object.Doc)
	return audience.IsPublic(a.Addressing) || err != nil || audience.IsPublic(ofObject)
}
