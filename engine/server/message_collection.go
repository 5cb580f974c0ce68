package server

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// messagesPage is the number of activities on a page of the messages.
const messagesPage = 20

// getCollection shows the user's devices the activities that brought MLS messages, the newest
// first. Each activity has the form in which it was received. A message that no activity brought
// is shown as an object. Other clients do not even learn whether the user exists.
func (s *conversations) getCollection(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache(cachePrivate)
	a.addVary("Authorization")
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	if p.ByName("user") != t.User.String() {
		return fault.New(fault.Forbidden, "the messages are another user's")
	}
	contentType, err := a.chooseDocument(r)
	if err != nil {
		return err
	}
	id := string(s.local.ID(t.User)) + "/messages"
	before := int64(0)
	if given := r.URL.Query().Get("before"); given != "" {
		if before, err = strconv.ParseInt(given, 10, 64); err != nil || before < 1 {
			return fault.New(fault.Invalid, "before is the number of a message").WithCode("bad_query")
		}
	}
	page, err := s.members.NewestMessages(r.Context(), t.User, before, messagesPage)
	if err != nil {
		return err
	}
	if before == 0 && !wantsPage(r) {
		d := vocab.Doc{"@context": vocab.MessageActivityContext(), "id": id, "type": vocab.OrderedCollection, "totalItems": page.Total, "first": id + "?page=true"}
		a.send(http.StatusOK, contentType, d.JSON())
		return nil
	}
	a.send(http.StatusOK, contentType, showMessages(id, before, page))
	return nil
}

// showMessages writes a page. It copies the activities byte by byte as they were received.
func showMessages(id string, before int64, page conversation.MessagePage) []byte {
	at := id + "?page=true"
	if before > 0 {
		at = id + "?before=" + strconv.FormatInt(before, 10)
	}
	d := vocab.Doc{"@context": vocab.MessageActivityContext(), "id": at, "type": "OrderedCollectionPage", "partOf": id, "totalItems": page.Total}
	if page.More {
		d["next"] = id + "?before=" + strconv.FormatInt(page.Entries[len(page.Entries)-1].Arrival, 10)
	}
	head := d.JSON()
	out := append(head[:len(head)-1:len(head)-1], `,"orderedItems":[`...)
	for i, e := range page.Entries {
		if i > 0 {
			out = append(out, ',')
		}
		if e.Activity == "" {
			out = append(out, showObject(e).JSON()...)
			continue
		}
		out = append(out, conversation.JoinContent(e)...)
	}
	return append(out, `]}`...)
}

// showObject writes a message that was read from the log of the conversation's host, and that no
// activity brought.
func showObject(e user.InboxEntry) vocab.Doc {
	return vocab.Doc{"type": "PrivateMessage", "id": string(e.Object), "attributedTo": string(e.Sender), "mediaType": "message/mls", "encoding": "base64",
		"content": base64.StdEncoding.EncodeToString(e.Content), "context": e.Group}
}
