package outbox

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// markRead records up to which entry the user has read a feed or a conversation. The mark never
// moves back.
type markRead struct {
	Feed           string `json:"feed" schema:"feed,optional"`
	EntryID        string `json:"entryId" schema:"entry,either,feed"`
	Cursor         string `json:"cursor" schema:"cursor,either,feed"`
	ConversationID string `json:"conversationId" schema:"conversation,either"`
	Seq            int64  `json:"seq" schema:"seq,optional,conversationId"`
	Entry          int64  `json:"entry" schema:"number,optional,conversationId"`
}

func (p *markRead) checkParams() error {
	if p.ConversationID != "" {
		return p.checkConversation()
	}
	if p.Seq != 0 || p.Entry != 0 {
		return badParam("conversationId", "seq and entry are numbers of a conversation: name it by conversationId")
	}
	if !slices.Contains(feed.All, p.Feed) {
		return badParam("feed", "feed is main, notifications or requests")
	}
	if err := checkEither("entryId", p.EntryID, "cursor", p.Cursor); err != nil {
		return err
	}
	if _, err := uuid.Parse(p.EntryID); err != nil && p.EntryID != "" {
		return badParam("entryId", "entryId is the id of an item of the feed")
	}
	return nil
}

func (p *markRead) checkConversation() error {
	switch {
	case p.Feed != "" || p.EntryID != "" || p.Cursor != "":
		return badParam("conversationId", "give either a feed or conversationId")
	case p.Seq < 0 || p.Entry < 0:
		return badParam("seq", "seq is a number of the log, entry one of the timeline")
	}
	return checkUUID("conversationId", p.ConversationID)
}

// submit moves the marks of a conversation. It reports whether the action names a conversation.
func (p *markRead) submit(ctx context.Context, in *conversations, x *exchange) (bool, error) {
	if p.ConversationID == "" {
		return false, nil
	}
	c, err := in.findConversation(ctx, x, p.ConversationID)
	if err != nil {
		return true, err
	}
	return true, in.registry.MarkRead(ctx, x.User, c.ID, p.Seq, p.Entry)
}

// applyChange moves the mark of a feed. If the mark moved, the user's clients get an event.
func (p *markRead) applyChange(ctx context.Context, tx *user.Tx, x *exchange) error {
	place, err := p.findPlace(ctx, tx, x.User)
	if err != nil {
		return err
	}
	moved, err := tx.Feed.MoveMark(ctx, p.Feed, *place)
	if err != nil || !moved {
		return err
	}
	at := feed.NewMark(*place)
	return tx.Events.Add(ctx, handler.NewReadEvent(handler.ReadPayload{Feed: p.Feed, Entry: at.ID, Published: at.Published, Cause: x.cause}, x.now))
}

// findPlace returns the place in the feed up to which the user has read it.
func (p *markRead) findPlace(ctx context.Context, tx *user.Tx, u vocab.Username) (*user.Place, error) {
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
