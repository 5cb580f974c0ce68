package feed

import (
	"encoding/json"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Row is an entry as it is stored, with its documents parsed.
type Row struct {
	db.FeedItem
	activity, object, readable vocab.Doc // object is nil when it is not stored
	author                     vocab.ID
	to                         vocab.Addressing
}

// ParseRow reads the documents of an entry, and reports whether they can be read. An entry that
// cannot be read is not shown: one bad object must not take the whole feed away.
func ParseRow(item db.FeedItem) (row Row, isReadable bool) {
	r := Row{FeedItem: item}
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
	if r.readable, err = vocab.ParseDoc(item.Readable); item.Readable == nil || err != nil {
		r.readable = vocab.Readable(r.object, nil)
	}
	r.author = authorOf(r)
	r.to, err = addressingOf(r)
	return r, err == nil
}

// addressingOf returns what the object says, or its Create when it says nothing.
func addressingOf(r Row) (vocab.Addressing, error) {
	to, err := vocab.AddressingOf(r.object)
	if err != nil || len(to.All()) > 0 || r.Type != vocab.Create {
		return to, err
	}
	return vocab.AddressingOf(r.activity)
}

// authorOf returns the actor the object's server speaks for, or who sent the Create of an object
// that names nobody.
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

// authorOrActor returns whose followers the addressing may mean.
func (r Row) authorOrActor() vocab.ID {
	if r.author != "" {
		return r.author
	}
	return r.Actor
}

// showEntry returns an entry as it is shown to a reader of these languages. followers is the
// collection of the author's.
func (r Row) showEntry(languages []string, followers vocab.ID, hasEmoji bool) Shown {
	s := Shown{Voices: r.voices(), followers: followers, line: db.FeedLine{FeedEntry: r.FeedEntry, ObjectURI: r.ObjectURI, Revision: r.Revision, ObjectRevision: r.ObjectRevision},
		Item: Item{ID: r.ID, ActivityURI: r.FeedEntry.Activity, Type: r.Type, ActorURI: r.Actor, Published: r.Published.UTC(),
			Visibility: audience.Of(r.to, r.authorOrActor(), followers).Visibility(), AuthorURI: r.author}}
	activity := vocab.ShowActivity(r.activity, r.object != nil, hasEmoji)
	if r.object != nil {
		activity["object"] = string(r.ObjectURI)
		s.Object = vocab.Show(r.object, r.readable, languages).JSON()
	}
	s.Activity = activity.JSON()
	return s
}

// voices returns everybody who sent or wrote this.
func (r Row) voices() []vocab.ID {
	all := []vocab.ID{r.Actor}
	authors, err := r.object.IDs("attributedTo")
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

// collectMade returns what ParseRow made for readers of objects that were stored without it.
func collectMade(rows []Row) map[vocab.ID]json.RawMessage {
	made := map[vocab.ID]json.RawMessage{}
	for _, r := range rows {
		if r.object != nil && r.Readable == nil {
			made[r.ObjectURI] = r.readable.JSON()
		}
	}
	return made
}
