package feed

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Item is one entry of a feed, as the client API shows it. Each text is in it once, in Object.
type Item struct {
	ID          uuid.UUID `json:"id"`
	ActivityURI vocab.ID  `json:"activityUri"`
	Type        string    `json:"type"` // of the activity
	ActorURI    vocab.ID  `json:"actorUri"`
	Published   time.Time `json:"published"`
	Visibility  string    `json:"visibility"`          // of the object, or of the activity if no object is stored
	AuthorURI   vocab.ID  `json:"authorUri,omitempty"` // proven author of the object, else absent
	Activity    Document  `json:"activity"`
	Object      Document  `json:"object"` // null if no object is stored
}

// Document is JSON in the form that readers see. The empty text stands for null.
type Document string

// MarshalJSON returns the document as it is.
func (d Document) MarshalJSON() ([]byte, error) { return []byte(cmp.Or(d, "null")), nil }

// Page is a part of a feed, the newest first.
type Page struct {
	Items  []Item                  `json:"items"`
	Actors map[vocab.ID]vocab.Card `json:"actors"`         // the actors of the items and the authors of the objects
	Next   string                  `json:"next,omitempty"` // the cursor of the page that follows; absent on the last one

	Unread   *user.Unread `json:"unread,omitempty"`   // only if the request asks for it
	ReadUpTo *Mark        `json:"readUpTo,omitempty"` // only if the request asks for it and the user has said how far
}

// Entry is one item with its actors.
type Entry struct {
	Item
	Actors map[vocab.ID]vocab.Card `json:"actors"`
}

// JSON writes the page. It copies the documents as they are, because encoding/json would parse
// each of them again.
func (p Page) JSON() json.RawMessage {
	b := append(make([]byte, 0, len(`{"items":[],"actors":{},"next":""}`)+len(p.Next)+size(p.Items)), `{"items":[`...)
	for n, i := range p.Items {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(i.appendMembers(append(b, '{')), '}')
	}
	b = appendActors(append(b, `],"actors":`...), p.Actors)
	if p.Next != "" {
		b = vocab.AppendText(append(b, `,"next":`...), p.Next)
	}
	return append(p.appendReading(b), '}')
}

// appendReading writes how many entries are unread, and how far the user has read the feed.
func (p Page) appendReading(b []byte) []byte {
	if p.Unread != nil {
		b = strconv.AppendInt(append(b, `,"unread":{"count":`...), int64(p.Unread.Count), 10)
		if p.Unread.More {
			b = append(b, `,"more":true`...)
		}
		b = append(b, '}')
	}
	if p.ReadUpTo != nil {
		b = append(append(b, `,"readUpTo":{"id":"`...), p.ReadUpTo.ID.String()...)
		b = append(p.ReadUpTo.Published.AppendFormat(append(b, `","published":"`...), time.RFC3339Nano), `"}`...)
	}
	return b
}

// size estimates how many bytes items take.
func size(items []Item) int {
	all := 0
	for _, i := range items {
		all += 512 + len(i.Activity) + len(i.Object)
	}
	return all
}

// JSON writes the entry. Like Page.JSON, it copies the documents as they are.
func (e Entry) JSON() json.RawMessage {
	b := e.appendMembers([]byte{'{'})
	b = appendActors(append(b, `,"actors":`...), e.Actors)
	return append(b, '}')
}

func (i Item) appendMembers(b []byte) []byte {
	b = append(append(b, `"id":"`...), i.ID.String()...)
	b = vocab.AppendText(append(b, `","activityUri":`...), string(i.ActivityURI))
	b = vocab.AppendText(append(b, `,"type":`...), i.Type)
	b = vocab.AppendText(append(b, `,"actorUri":`...), string(i.ActorURI))
	b = i.Published.AppendFormat(append(b, `,"published":"`...), time.RFC3339Nano)
	b = vocab.AppendText(append(b, `","visibility":`...), i.Visibility)
	if i.AuthorURI != "" {
		b = vocab.AppendText(append(b, `,"authorUri":`...), string(i.AuthorURI))
	}
	b = append(append(b, `,"activity":`...), i.Activity...)
	return append(append(b, `,"object":`...), cmp.Or(i.Object, "null")...)
}

func appendActors(b []byte, actors map[vocab.ID]vocab.Card) []byte {
	b = append(b, '{')
	for n, id := range slices.Sorted(maps.Keys(actors)) {
		if n > 0 {
			b = append(b, ',')
		}
		c := actors[id]
		b = append(vocab.AppendText(b, string(id)), ':')
		b = vocab.AppendText(append(b, `{"name":`...), c.Name)
		b = vocab.AppendText(append(b, `,"handle":`...), c.Handle)
		b = append(vocab.AppendText(append(b, `,"icon":`...), string(c.Icon)), '}')
	}
	return append(b, '}')
}
