package feed

import (
	"time"

	"github.com/google/uuid"

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
