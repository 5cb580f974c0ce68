package handler

import (
	"maps"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// data is a registry without users. Only the data fields of its handlers are used.
var data = New(nil, nil)

// StoredTypes returns the types of activities that the queries on users' databases treat
// differently.
func StoredTypes() user.Types { return data.storedTypes() }

// LastingTypes returns the types whose deliveries are retried for 30 days.
func LastingTypes() []string { return data.Types(func(h Handler) bool { return h.Lasting }) }

// HasEmoji reports whether the content of activities of a type may be an emoji.
func HasEmoji(kind string) bool { return data.OfType(kind).Emoji }

// HasWords reports whether activities of a type contain the text of an object that their actor
// wrote.
func HasWords(kind string) bool { return data.OfType(kind).Words }

// IsInFeed reports whether activities of a type are shown in the feeds of the users that they
// are sent to.
func IsInFeed(kind string) bool { return data.OfType(kind).InFeed }

// Brings reports whether activities of a type bring an object to their readers.
func Brings(kind string) bool { return data.OfType(kind).Brings() }

// BringingTypes returns the types whose activities bring an object to their readers.
func BringingTypes() []string { return data.Types(Handler.Brings) }

// Brings reports whether an activity with this handler brings an object to its readers.
func (h Handler) Brings() bool { return h.Words || h.InFeed }

// OfType returns the handler that is registered for a type without an object type, or the zero
// Handler.
func (r *Registry) OfType(kind string) Handler { return r.handlers[Key{Type: kind}] }

// Types returns the sorted names of the types that have a handler h for which is(h) returns
// true.
func (r *Registry) Types(is func(Handler) bool) []string {
	types := map[string]bool{}
	for k, h := range r.handlers {
		if is(h) {
			types[k.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(types))
}

func (r *Registry) storedTypes() user.Types {
	notice := func(n Notice) []string { return r.Types(func(h Handler) bool { return h.Notifies == n }) }
	return user.Types{
		Words:       r.Types(func(h Handler) bool { return h.Words }),
		Authored:    r.Types(func(h Handler) bool { return h.Authored }),
		ShowObject:  r.Types(func(h Handler) bool { return h.ShowsObject }),
		Ordered:     r.Types(func(h Handler) bool { return h.Ordered }),
		TakeBack:    r.Types(func(h Handler) bool { return h.TakesBack }),
		Relate:      r.Types(func(h Handler) bool { return h.Relates }),
		Answer:      r.Types(func(h Handler) bool { return h.Answers }),
		Notify:      notice(NoticeAlways),
		NotifyOwner: notice(NoticeOfOwn),
		NotifyNamed: notice(NoticeOfNamed),
	}
}

// OrderOf returns the id by which the deliveries of an activity are ordered. Deliveries to one
// inbox that have equal ids of this kind keep their order. So an Undo never overtakes the activity
// that it takes back, and an Update or Delete never overtakes the Create of its object. A reaction
// may overtake the Create of its object, because it is ordered by its own id (see
// Handler.Ordered).
func (r *Registry) OrderOf(a *vocab.Activity) vocab.ID {
	if r.Lookup(a).Ordered {
		return a.ID
	}
	return a.Object.ID
}

// ObjectOf returns the object or group that an activity of the user makes, changes or is about.
// It is empty if the activity is about an actor.
func (r *Registry) ObjectOf(a *vocab.Activity) vocab.ID {
	if about := r.Lookup(a).About; about != nil {
		return about(a)
	}
	return ""
}

// objectID is the usual function in the field About of a Handler.
func objectID(a *vocab.Activity) vocab.ID { return a.Object.ID }
