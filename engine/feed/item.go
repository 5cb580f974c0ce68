package feed

import (
	"encoding/json"
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

func itemOf(row db.FeedItem) Item {
	return Item{ID: row.ID, ActivityURI: row.FeedEntry.Activity, Type: row.Type, ActorURI: row.Actor,
		Published: row.Published.UTC(), Activity: row.Raw, Object: readable(row.Object)}
}

// readable returns a stored object with its words as plain text in source, which readers can show as it is. What the
// author said there in plain text stays; anything else, such as Markdown, gives way to the words of content. An object that
// cannot be parsed any more is left as it is: one bad object must not take the whole feed away.
func readable(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	d, err := vocab.ParseDoc(raw)
	if err != nil {
		return raw
	}
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
