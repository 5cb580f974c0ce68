package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// markRead says up to which entry the user has read a feed. The mark does not go back.
type markRead struct {
	Feed    string `json:"feed" schema:"feed"`
	EntryID string `json:"entryId" schema:"entry,either"`
	Cursor  string `json:"cursor" schema:"cursor,either"`
}

func (p *markRead) checkParams() error {
	if !slices.Contains(feed.All, p.Feed) {
		return badParam("feed", "feed is main, notifications or requests")
	}
	if (p.EntryID == "") == (p.Cursor == "") {
		return badParam("entryId", "give either entryId or cursor")
	}
	if _, err := uuid.Parse(p.EntryID); err != nil && p.EntryID != "" {
		return badParam("entryId", "entryId is the id of an item of the feed")
	}
	return nil
}

// applyChange moves the mark. Other programs of the user's are told when it moved.
func (p *markRead) applyChange(ctx context.Context, tx *db.Tx, x *exchange) error {
	place, err := p.findPlace(ctx, tx, x.User)
	if err != nil {
		return err
	}
	moved, err := tx.MoveFeedMark(ctx, p.Feed, *place)
	if err != nil || !moved {
		return err
	}
	at := feed.NewMark(*place)
	return tx.AddEvent(ctx, handler.NewReadEvent(handler.ReadPayload{Feed: p.Feed, Entry: at.ID, Published: at.Published, Cause: x.cause}, x.now))
}

// findPlace returns the place up to which the feed is read.
func (p *markRead) findPlace(ctx context.Context, tx *db.Tx, u vocab.Username) (*db.Place, error) {
	if p.Cursor != "" {
		place, err := feed.FindPlace(u, p.Feed, p.Cursor)
		if err != nil {
			return nil, badParam("cursor", "cursor is not one of that feed's")
		}
		return place, nil
	}
	place, err := feed.FindEntry(ctx, tx, p.Feed, uuid.MustParse(p.EntryID))
	if err == nil && place == nil {
		err = fault.New(fault.NotFound, "there is no such entry in the feed").WithCode("no_entry").At("/params/entryId")
	}
	return place, err
}
