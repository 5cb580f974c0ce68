package feed

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Item is one entry of a feed, as the client API shows it. Each text stands in it once, in Object.
type Item struct {
	ID          uuid.UUID `json:"id"`
	ActivityURI vocab.ID  `json:"activityUri"`
	Type        string    `json:"type"` // of the activity
	ActorURI    vocab.ID  `json:"actorUri"`
	Published   time.Time `json:"published"`
	Visibility  string    `json:"visibility"`          // of the object, or of the activity when it is not stored
	AuthorURI   vocab.ID  `json:"authorUri,omitempty"` // the proven author of the object; absent when it is not stored
	Activity    vocab.Doc `json:"activity"`
	Object      vocab.Doc `json:"object"` // null when it is not stored
}

// Page is a part of a feed, the newest first.
type Page struct {
	Items  []Item                  `json:"items"`
	Actors map[vocab.ID]vocab.Card `json:"actors"`         // those of the items, and the authors
	Next   string                  `json:"next,omitempty"` // the cursor of the page that follows; absent on the last one
}

// Entry is one item with its actors.
type Entry struct {
	Item
	Actors map[vocab.ID]vocab.Card `json:"actors"`
}

// entry is a row whose documents are parsed.
type entry struct {
	db.FeedItem
	activity, object, readable vocab.Doc // object is nil when it is not stored
	author                     vocab.ID
	to                         vocab.Addressing
}

// parseItem reads the documents of a row. One bad object must not take the whole feed away: one
// that cannot be read any more is not shown.
func parseItem(row db.FeedItem) (entry, bool) {
	e := entry{FeedItem: row}
	var err error
	if e.activity, err = vocab.ParseDoc(row.Raw); err != nil {
		return e, false
	}
	if row.Object == nil {
		e.to, err = vocab.AddressingOf(e.activity)
		return e, err == nil
	}
	if e.object, err = vocab.ParseDoc(row.Object); err != nil {
		return e, false
	}
	if e.readable, err = vocab.ParseDoc(row.Readable); row.Readable == nil || err != nil {
		e.readable = vocab.Readable(e.object, nil)
	}
	e.author = authorOf(e)
	e.to, err = addressingOf(e)
	return e, err == nil
}

// addressingOf returns what the object says, or its Create when it says nothing.
func addressingOf(e entry) (vocab.Addressing, error) {
	to, err := vocab.AddressingOf(e.object)
	if err != nil || len(to.All()) > 0 || e.Type != vocab.Create {
		return to, err
	}
	return vocab.AddressingOf(e.activity)
}

// authorOf returns the actor the object's server speaks for, or who sent the Create of an object
// that names nobody.
func authorOf(e entry) vocab.ID {
	if o, err := vocab.ObjectOf(e.object); err == nil && o.AttributedTo != "" && o.AttributedTo.SameOrigin(o.ID) {
		return o.AttributedTo
	}
	if e.Type == vocab.Create && e.object["type"] != "Tombstone" {
		return e.Actor
	}
	return ""
}

// authorOrActor returns whose followers the addressing may mean.
func (e entry) authorOrActor() vocab.ID {
	if e.author != "" {
		return e.author
	}
	return e.Actor
}

// isShown reports whether the gate lets everybody be heard who sent or wrote this.
func (r *Reader) isShown(e entry) bool {
	by := []vocab.ID{e.Actor}
	if authors, err := e.object.IDs("attributedTo"); err == nil {
		by = append(by, authors...)
	}
	return !slices.ContainsFunc(by, func(id vocab.ID) bool { return r.gate.CheckActor(id) != nil })
}

// item returns an entry as it is shown to a reader of these languages. followers is the collection
// of the author's.
func (e entry) item(languages []string, followers vocab.ID, hasEmoji bool) Item {
	i := Item{ID: e.ID, ActivityURI: e.FeedEntry.Activity, Type: e.Type, ActorURI: e.Actor, Published: e.Published.UTC(),
		Visibility: audience.Of(e.to, e.authorOrActor(), followers).Visibility(), AuthorURI: e.author,
		Activity: vocab.ShowActivity(e.activity, e.object != nil, hasEmoji)}
	if e.object != nil {
		i.Object = vocab.Show(e.object, e.readable, languages)
	}
	return i
}

// unmade returns what readers are shown of objects that were stored without it.
func unmade(entries []entry) map[vocab.ID]json.RawMessage {
	made := map[vocab.ID]json.RawMessage{}
	for _, e := range entries {
		if e.object != nil && e.Readable == nil {
			made[e.ObjectURI] = e.readable.JSON()
		}
	}
	return made
}
