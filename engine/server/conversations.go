package server

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxConversation limits the bytes of the body of a request to a conversation. The body may be a
// commit with its GroupInfo and its Welcomes, in base64.
const maxConversation = 8 << 20

// conversations serves users' clients their conversations, encrypted or not, and their MLS
// messages, Welcomes and key packages.
type conversations struct {
	*clientAPI
	registry *conversation.Registry
	members  *conversation.Members
	messages *policy.Pool // limits the memory for bodies
}

// readJSON decodes a body as vocab.ParseInto does. The body is charged to the user.
func (s *conversations) readJSON(a *answer, r *http.Request, u vocab.Username, into any) error {
	body, err := readJSON(a, r, s.messages, u.String(), maxConversation)
	if err != nil {
		return err
	}
	return vocab.ParseInto(body, into)
}

// authorizeFor authorizes a request to a conversation, and reads the id of the conversation.
func (s *conversations) authorizeFor(a *answer, r *http.Request, p httprouter.Params, scope string) (vocab.Username, uuid.UUID, error) {
	t, err := s.authorize(a, r, scope)
	if err != nil {
		return t.User, uuid.Nil, err
	}
	id, err := parseID(p, "id")
	return t.User, id, err
}

// find authorizes a request to a conversation, and reads the conversation.
func (s *conversations) find(a *answer, r *http.Request, p httprouter.Params, scope string) (vocab.Username, *user.Conversation, error) {
	u, id, err := s.authorizeFor(a, r, p, scope)
	if err != nil {
		return u, nil, err
	}
	c, err := s.registry.Find(r.Context(), u, id)
	return u, c, err
}

// sendCreated answers with v as JSON.
func (a *answer) sendCreated(status int, v any) error {
	body, err := vocab.Marshal(v)
	if err == nil {
		a.send(status, apiJSON, body)
	}
	return err
}

func (a *answer) sendAccepted(accepted conversation.Accepted) error {
	if accepted.Replayed {
		a.Header().Set("Idempotent-Replayed", "true")
	}
	return a.sendCreated(http.StatusCreated, accepted)
}

// newConversation is the body of a request for a conversation.
type newConversation struct {
	With        string    `json:"with"`        // the other actor of a conversation of two, which begins unencrypted
	Upgrades    uuid.UUID `json:"upgrades"`    // the conversation of two that gets the MLS group
	Predecessor uuid.UUID `json:"predecessor"` // the closed conversation that the new one continues
	GroupInfo   []byte    `json:"groupInfo"`
}

// postConversation makes a conversation, either from a new MLS group or with another actor. If the
// body names a conversation to upgrade, it stores the MLS group for that conversation instead.
func (s *conversations) postConversation(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body newConversation
	if err := s.readJSON(a, r, t.User, &body); err != nil {
		return err
	}
	if body.With != "" {
		return s.openConversation(a, r, t, body)
	}
	if len(body.GroupInfo) == 0 {
		return fault.New(fault.Unprocessable, "give either with or groupInfo").WithCode("invalid_parameter").At("/groupInfo")
	}
	var v conversation.View
	switch {
	case body.Upgrades != uuid.Nil && body.Predecessor != uuid.Nil:
		return fault.New(fault.Unprocessable, "give either upgrades or predecessor").WithCode("invalid_parameter").At("/upgrades")
	case body.Upgrades != uuid.Nil:
		v, err = s.registry.Upgrade(r.Context(), t.User, body.Upgrades, body.GroupInfo)
	case body.Predecessor != uuid.Nil:
		v, err = s.registry.Continue(r.Context(), t.User, body.Predecessor, body.GroupInfo)
	default:
		v, err = s.registry.Create(r.Context(), t.User, body.GroupInfo)
	}
	if err != nil {
		return err
	}
	c, err := s.registry.Find(r.Context(), t.User, v.ID)
	if err != nil {
		return err
	}
	a.Header().Set("Location", "/api/conversations/"+v.ID.String())
	return a.sendCreated(http.StatusCreated, showView(v, c, 0))
}

// openConversation shows the user's conversation with an actor, and makes it if there is none.
func (s *conversations) openConversation(a *answer, r *http.Request, t instance.Token, body newConversation) error {
	if body.GroupInfo != nil || body.Upgrades != uuid.Nil || body.Predecessor != uuid.Nil {
		return fault.New(fault.Unprocessable, "with stands alone").WithCode("invalid_parameter").At("/with")
	}
	if err := s.countLookup(a, payerOf(t)); err != nil {
		return err
	}
	with, err := s.outbox.FindActor(r.Context(), t.User, false, body.With)
	if err != nil {
		return err
	}
	c, made, err := s.registry.Open(r.Context(), t.User, with.ID)
	if err != nil {
		return err
	}
	h, err := s.registry.Held(r.Context(), t.User, c.ID)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	a.Header().Set("Location", "/api/conversations/"+c.ID.String())
	return a.sendCreated(status, showHeld(h))
}

const conversationsPage = 50

// getConversations lists the conversations of the user, the newest first.
func (s *conversations) getConversations(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "cursor")
	if err != nil {
		return err
	}
	scope := t.User.String() + "/conversations"
	after, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	all, err := s.registry.Conversations(r.Context(), t.User, after, conversationsPage+1)
	if err != nil {
		return err
	}
	list := conversationList{Items: []conversationHead{}}
	all, list.Next = cutRows(all, conversationsPage, scope, func(c user.ListedConversation) user.Place { return user.Place{At: c.CreatedAt, ID: c.ID} })
	for _, c := range all {
		list.Items = append(list.Items, showListed(c))
	}
	linkNext(a, r, q, list.Next)
	return a.sendJSON(r, list)
}

// getConversation shows a member a conversation with a page of its entries, the newest first.
func (s *conversations) getConversation(a *answer, r *http.Request, p httprouter.Params) error {
	u, c, err := s.find(a, r, p, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "cursor")
	if err != nil {
		return err
	}
	shown, err := s.showConversation(r, u, c)
	if err != nil {
		return err
	}
	if shown.Items, shown.Next, err = s.readTimeline(r, u, c.ID, q.Get("cursor")); err != nil {
		return err
	}
	linkNext(a, r, q, shown.Next)
	return a.sendJSON(r, shown)
}

// showConversation shows the state of a conversation to a member.
func (s *conversations) showConversation(r *http.Request, u vocab.Username, c *user.Conversation) (shown shownConversation, err error) {
	h, err := s.registry.Held(r.Context(), u, c.ID)
	if err != nil || c.GroupID == "" {
		return showHeld(h), err
	}
	v, err := s.members.View(r.Context(), u, c)
	if err != nil {
		return shown, err
	}
	return showView(v, c, h.Unread), nil
}

// putRead stores how far the user has read a conversation.
func (s *conversations) putRead(a *answer, r *http.Request, p httprouter.Params) error {
	u, c, err := s.find(a, r, p, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		Seq   int64 `json:"seq"`
		Entry int64 `json:"entry"`
	}
	if err := s.readJSON(a, r, u, &body); err != nil {
		return err
	}
	if body.Seq < 0 || body.Entry < 0 {
		return fault.New(fault.Unprocessable, "seq is a number of the log, entry one of the timeline").WithCode("invalid_parameter").At("/seq")
	}
	if err := s.registry.MarkRead(r.Context(), u, c.ID, body.Seq, body.Entry); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// change calls apply with the user and an id from the path. The parameter name is the name of the
// part of the path that has the id.
func (s *conversations) change(a *answer, r *http.Request, p httprouter.Params, name string, apply func(context.Context, vocab.Username, uuid.UUID) error) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	id, err := parseID(p, name)
	if err != nil {
		return err
	}
	if err := apply(r.Context(), t.User, id); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}
