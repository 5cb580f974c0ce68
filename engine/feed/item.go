package feed

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Item is one entry of a feed, as the client API shows it.
type Item struct {
	ID          uuid.UUID       `json:"id"`
	ActivityURI vocab.ID        `json:"activityUri"`
	Type        string          `json:"type"` // of the activity
	ActorURI    vocab.ID        `json:"actorUri"`
	Published   time.Time       `json:"published"`
	Activity    json.RawMessage `json:"activity"`
	Object      json.RawMessage `json:"object"` // with its words as plain text in source; null when it is not stored
}

// Page is a part of a feed, the newest first.
type Page struct {
	Items []Item `json:"items"`
	Next  string `json:"next,omitempty"` // the cursor of the page that follows; absent on the last one
}

// itemOf returns an entry as it is shown, and whether it is.
func (r *Reader) itemOf(row db.FeedItem) (item Item, shown bool) {
	item = Item{ID: row.ID, ActivityURI: row.FeedEntry.Activity, Type: row.Type, ActorURI: row.Actor,
		Published: row.Published.UTC(), Activity: row.Raw, Object: row.Object}
	by := []vocab.ID{row.Actor}
	// One bad object must not take the whole feed away: what cannot be parsed any more is left as it is.
	if d, err := vocab.ParseDoc(row.Object); row.Object != nil && err == nil {
		if authors, err := d.IDs("attributedTo"); err == nil {
			by = append(by, authors...)
		}
		item.Object = readable(row.Object, d)
	}
	return item, !slices.ContainsFunc(by, func(id vocab.ID) bool { return r.gate.CheckActor(id) != nil })
}

// readable returns a stored object with its words as plain text in source, which readers can show as it is. What the
// author said there in plain text stays; anything else, such as Markdown, gives way to the words of content.
func readable(raw json.RawMessage, d vocab.Doc) json.RawMessage {
	source, _ := d["source"].(vocab.Doc)
	if _, isText := source["content"].(string); isText && source.Text("mediaType") == plainText {
		return raw
	}
	delete(d, "source")
	if html := d.Words("content"); html != "" {
		d["source"] = vocab.Doc{"content": vocab.HTMLToText(html), "mediaType": plainText}
	}
	return d.JSON()
}

const plainText = "text/plain"
