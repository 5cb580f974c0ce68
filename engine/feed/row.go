package feed

import (
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/cache"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Row is an entry as it is stored, with its documents parsed.
type Row struct {
	user.FeedItem
	kept                       *Shown    // the stored form; nil: the documents were parsed
	activity, object, readable vocab.Doc // object is nil if it is not stored
	author                     vocab.ID
	to                         vocab.Addressing
}

// ParseRow parses the documents of an entry, and reports whether it could. An entry that cannot
// be parsed is not shown: one bad object must not make the whole feed fail.
func ParseRow(item user.FeedItem) (row Row, isReadable bool) {
	r := Row{FeedItem: item}
	if item.Form != "" {
		kept, isReadable := readEntry(item.Form)
		r.kept, r.author = &kept, kept.AuthorURI
		return r, isReadable
	}
	var err error
	if r.activity, err = vocab.ParseDoc(item.Raw); err != nil {
		return r, false
	}
	if item.Object == nil {
		r.to, err = vocab.AddressingOf(r.activity)
		return r, err == nil
	}
	if r.object, err = vocab.ParseDoc(item.Object); err != nil {
		return r, false
	}
	r.readable = vocab.ReadableOf(r.object, item.Readable)
	r.author = authorOf(r)
	r.to, err = addressingOf(r)
	return r, err == nil
}

// addressingOf returns the addressing of the object, or of its Create if the object has none.
func addressingOf(r Row) (vocab.Addressing, error) {
	to, err := vocab.AddressingOf(r.object)
	if err != nil || len(to.All()) > 0 || r.Type != vocab.Create {
		return to, err
	}
	return vocab.AddressingOf(r.activity)
}

// authorOf returns the actor that attributedTo of the object names, if that actor is on the
// object's server. Otherwise it returns the sender if the activity is a Create and the object is
// not a Tombstone, and "" in all other cases.
func authorOf(r Row) vocab.ID {
	if o, err := vocab.ObjectOf(r.object); err == nil && o.AttributedTo != "" && o.AttributedTo.SameOrigin(o.ID) {
		return o.AttributedTo
	}
	if r.Type == vocab.Create && r.object["type"] != "Tombstone" {
		return r.Actor
	}
	return ""
}

// actorsOf returns the actors and authors of rows, each once.
func actorsOf(rows []Row) []vocab.ID {
	var all []vocab.ID
	seen := map[vocab.ID]bool{"": true}
	for _, r := range rows {
		for _, id := range []vocab.ID{r.Actor, r.author} {
			if !seen[id] {
				seen[id] = true
				all = append(all, id)
			}
		}
	}
	return all
}

// authorOrActor returns the author of the object, or the sender if the author is not known. The
// addressing may name the followers of the returned actor.
func (r Row) authorOrActor() vocab.ID {
	if r.author != "" {
		return r.author
	}
	return r.Actor
}

// isOutdated reports whether the form was stored when the author's followers collection had
// another id.
func (r Row) isOutdated(cards map[vocab.ID]vocab.Card) bool {
	return r.kept != nil && r.kept.followers != cards[r.authorOrActor()].Followers
}

// showEntry returns an entry as readers of these languages see it. The parameter followers is the
// author's followers collection.
func (r Row) showEntry(languages []string, followers vocab.ID, hasEmoji bool) (s Shown) {
	switch {
	case r.kept != nil:
		s = *r.kept
		s.Object = Document(r.ObjectForm)
	default:
		s = Shown{Voices: voicesOf(r.Actor, r.object), followers: followers,
			Item: Item{Type: r.Type, Visibility: audience.Of(r.to, r.authorOrActor(), followers).Visibility(), AuthorURI: r.author}}
		activity := vocab.ShowActivity(r.activity, r.object != nil, hasEmoji)
		if r.object != nil {
			activity["object"] = string(r.ObjectURI)
			s.Object = Document(vocab.Show(r.object, r.readable, languages).JSON())
		}
		s.Activity = Document(activity.JSON())
	}
	s.ID, s.ActivityURI, s.ActorURI, s.Published = r.ID, r.FeedEntry.Activity, r.Actor, r.Published.UTC()
	s.line = user.FeedLine{FeedEntry: r.FeedEntry, ObjectURI: r.ObjectURI, Revision: r.Revision, ObjectRevision: r.ObjectRevision}
	return s
}

// formOf returns the form of an entry, so that it can be stored. ok is false if the form was
// stored before, if the entry has no revision, or if the form is too large for a cache. It is also
// false if the readable text of the object is not stored yet, because storing that text changes
// the object's revision.
func (r Row) formOf(s Shown) (form user.Form, ok bool) {
	if r.kept != nil || r.Revision == "" || r.object != nil && r.Readable == nil {
		return form, false
	}
	activity, ok := writeEntry(s)
	return user.Form{FeedLine: s.line, Activity: activity, Object: string(s.Object)}, ok && len(activity)+len(s.Object) <= cache.MaxDocument
}

// voicesOf returns every actor who sent or wrote an entry with this object.
func voicesOf(sender vocab.ID, object vocab.Doc) []vocab.ID {
	all := []vocab.ID{sender}
	authors, err := object.IDs("attributedTo")
	if err != nil {
		return all
	}
	for _, id := range authors {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// collectMade returns the readable texts that ParseRow made for objects that were stored without
// one.
func collectMade(rows []Row) map[vocab.ID]json.RawMessage {
	made := map[vocab.ID]json.RawMessage{}
	for _, r := range rows {
		if r.object != nil && r.Readable == nil {
			made[r.ObjectURI] = r.readable.JSON()
		}
	}
	return made
}
