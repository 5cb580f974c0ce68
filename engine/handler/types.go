package handler

import (
	"maps"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// data are the handlers as far as they depend on no user.
var data = New(nil, nil)

// StoredTypes returns the types that the queries on users' databases tell apart.
func StoredTypes() db.Types { return data.storedTypes() }

// LastingTypes returns the types whose deliveries are tried for a month: they take something back.
func LastingTypes() []string { return data.Types(func(h Handler) bool { return h.Lasting }) }

// HasEmoji reports whether the content of a type is an emoji.
func HasEmoji(kind string) bool { return data.OfType(kind).Emoji }

// HasWords reports whether a type brings the words of an object that its actor wrote.
func HasWords(kind string) bool { return data.OfType(kind).Words }

// IsInFeed reports whether a type has a place in the feed of the users it reached.
func IsInFeed(kind string) bool { return data.OfType(kind).InFeed }

// Brings reports whether a type brings an object to its readers.
func Brings(kind string) bool { return data.OfType(kind).Brings() }

// BringingTypes returns the types that bring an object to their readers.
func BringingTypes() []string { return data.Types(Handler.Brings) }

// Brings reports whether it brings an object to its readers.
func (h Handler) Brings() bool { return h.Words || h.InFeed }

// OfType returns the handler of a type, whatever its object; the zero Handler when there is none.
func (r *Registry) OfType(kind string) Handler { return r.handlers[Key{Type: kind}] }

// Types returns the names of the types of which something is true, in order.
func (r *Registry) Types(is func(Handler) bool) []string {
	types := map[string]bool{}
	for k, h := range r.handlers {
		if is(h) {
			types[k.Type] = true
		}
	}
	return slices.Sorted(maps.Keys(types))
}

func (r *Registry) storedTypes() db.Types {
	notice := func(n Notice) []string { return r.Types(func(h Handler) bool { return h.Notifies == n }) }
	return db.Types{
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

// OrderOf returns what deliveries of an activity to one inbox keep their order by: an Undo never
// overtakes what it takes back, and nothing overtakes the Create of its object.
func (r *Registry) OrderOf(a *vocab.Activity) vocab.ID {
	if r.Lookup(a).Ordered {
		return a.ID
	}
	return a.Object.ID
}

// ObjectOf returns the object or group that an activity of the user's makes, changes or is about,
// empty when that is an actor.
func (r *Registry) ObjectOf(a *vocab.Activity) vocab.ID {
	if about := r.Lookup(a).About; about != nil {
		return about(a)
	}
	return ""
}

// objectID is the usual form of About.
func objectID(a *vocab.Activity) vocab.ID { return a.Object.ID }
