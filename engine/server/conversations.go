package server

import (
	"context"
	"net/http"
	"strconv"

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

// maxConversation bounds the body of a request to a conversation, in bytes: it holds a commit
// with its GroupInfo and its Welcomes, in base64.
const maxConversation = 8 << 20

// conversations serves users' clients their encrypted conversations and key packages.
type conversations struct {
	*clientAPI
	registry *conversation.Registry
	members  *conversation.Members
	messages *policy.Pool // bounds bodies
}

// readJSON decodes a body as decodeStrictly does. The body is charged to the user.
func (s *conversations) readJSON(a *answer, r *http.Request, u vocab.Username, into any) error {
	body, err := readJSON(a, r, s.messages, u.String(), maxConversation)
	if err != nil {
		return err
	}
	return vocab.ParseInto(body, into)
}

// find authorizes a request to a conversation, and reads the conversation.
func (s *conversations) find(a *answer, r *http.Request, p httprouter.Params, scope string) (vocab.Username, *user.Conversation, error) {
	t, err := s.authorize(a, r, scope)
	if err != nil {
		return t.User, nil, err
	}
	id, err := parseID(p, "id")
	if err != nil {
		return t.User, nil, err
	}
	c, err := s.registry.Find(r.Context(), t.User, id)
	return t.User, c, err
}

// parseID returns the UUID that a path names.
func parseID(p httprouter.Params, name string) (uuid.UUID, error) {
	id, err := uuid.Parse(p.ByName(name))
	if err != nil || id.String() != p.ByName(name) {
		return uuid.Nil, errNothing
	}
	return id, nil
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
	Upgrades    uuid.UUID `json:"upgrades"`    // the conversation of two that becomes the MLS group
	Predecessor uuid.UUID `json:"predecessor"` // the closed conversation that the new one continues
	GroupInfo   []byte    `json:"groupInfo"`
}

// postConversation makes a conversation: from a new MLS group, or with another actor.
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
		return s.openConversation(a, r, t.User, body)
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
func (s *conversations) openConversation(a *answer, r *http.Request, u vocab.Username, body newConversation) error {
	if body.GroupInfo != nil || body.Upgrades != uuid.Nil || body.Predecessor != uuid.Nil {
		return fault.New(fault.Unprocessable, "with stands alone").WithCode("invalid_parameter").At("/with")
	}
	with, err := s.outbox.FindActor(r.Context(), u, false, body.With)
	if err != nil {
		return err
	}
	c, made, err := s.registry.Open(r.Context(), u, with.ID)
	if err != nil {
		return err
	}
	h, err := s.registry.Held(r.Context(), u, c.ID)
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

// takeCommit accepts a commit, which ends an epoch of a conversation.
func (s *conversations) takeCommit(isExternal bool) visited {
	return func(a *answer, r *http.Request, v *visit) error {
		key, err := idempotencyKey(r)
		if err != nil {
			return err
		}
		var body struct {
			Commit     []byte     `json:"commit"`
			GroupInfo  []byte     `json:"groupInfo"`
			Welcomes   [][]byte   `json:"welcomes"`
			Recipients []vocab.ID `json:"to"`
			Added      [][]byte   `json:"added"`
			Removed    []vocab.ID `json:"removed"`
		}
		if err := v.read(&body); err != nil {
			return err
		}
		if len(body.Recipients) > 0 {
			return s.sendTo(a, r, v, body.Commit, body.Recipients)
		}
		accepted, err := v.commit(r.Context(), conversation.Commit{Key: key, Message: body.Commit, GroupInfo: body.GroupInfo, Welcomes: body.Welcomes, External: isExternal,
			Declared: conversation.Declared{Added: body.Added, Removed: body.Removed}})
		if err != nil {
			return err
		}
		return a.sendAccepted(accepted)
	}
}

// takeMessage sends ciphertext to a conversation.
func (s *conversations) takeMessage(a *answer, r *http.Request, v *visit) error {
	var body struct {
		Message    []byte     `json:"message"`
		Recipients []vocab.ID `json:"to"`
	}
	if err := v.read(&body); err != nil {
		return err
	}
	if len(body.Recipients) > 0 {
		return s.sendTo(a, r, v, body.Message, body.Recipients)
	}
	accepted, err := v.send(r.Context(), body.Message)
	if err != nil {
		return err
	}
	return a.sendAccepted(accepted)
}

// sendTo sends a message of a group without a host to the recipients that the client names.
func (s *conversations) sendTo(a *answer, r *http.Request, v *visit, content []byte, to []vocab.ID) error {
	if v.own == nil {
		return fault.New(fault.Unprocessable, "the host of a conversation tells all its members: name none").WithCode("invalid_parameter").At("/to")
	}
	for i, id := range to {
		parsed, err := vocab.ParseID(string(id))
		if err != nil {
			return fault.Wrap(fault.Unprocessable, "to names actors by their ids", err).WithCode("invalid_parameter").At("/to")
		}
		to[i] = parsed
	}
	accepted, err := s.members.SendTo(r.Context(), v.user, v.own, content, to)
	if err != nil {
		return err
	}
	return a.sendAccepted(accepted)
}

// takeReset begins a reset of a conversation, or ends it with the GroupInfo of its next group.
func (s *conversations) takeReset(a *answer, r *http.Request, v *visit) error {
	var body struct {
		GroupInfo []byte `json:"groupInfo"`
	}
	if err := v.read(&body); err != nil {
		return err
	}
	if body.GroupInfo == nil {
		group, err := v.askReset(r.Context())
		if err != nil {
			return err
		}
		return a.sendCreated(http.StatusAccepted, resetAnswer{group})
	}
	accepted, err := v.reset(r.Context(), body.GroupInfo)
	if err != nil {
		return err
	}
	return a.sendAccepted(accepted)
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

// showLogPage shows a member the messages of a conversation, the oldest first.
func (s *conversations) showLogPage(a *answer, r *http.Request, v *visit) error {
	after, err := readAfter(r)
	if err != nil {
		return err
	}
	entries, more, err := v.readLog(r.Context(), after)
	if err != nil {
		return err
	}
	return a.sendJSON(r, logPage{showLog(entries), more})
}

// readAfter returns the number after which a client wants to read.
func readAfter(r *http.Request) (after int64, err error) {
	q, err := readQuery(r, "after")
	if err == nil && q.Has("after") {
		if after, err = strconv.ParseInt(q.Get("after"), 10, 64); err != nil || after < 0 {
			err = fault.New(fault.Invalid, "after is a number").WithCode("bad_query")
		}
	}
	return after, err
}

// getMessages shows the user's devices the MLS messages of all conversations, the oldest first.
func (s *conversations) getMessages(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	after, err := readAfter(r)
	if err != nil {
		return err
	}
	all, more, err := s.members.Messages(r.Context(), t.User, after)
	if err != nil {
		return err
	}
	return a.sendJSON(r, inboxPage{showInbox(all), more})
}

// showGroupInfo shows a member the state of the MLS group.
func (s *conversations) showGroupInfo(a *answer, r *http.Request, v *visit) error {
	info, epoch, err := v.groupInfo(r.Context())
	if err != nil {
		return err
	}
	return a.sendJSON(r, groupInfoAnswer{epoch, info})
}

// getWelcomes hands out the Welcomes that wait for the user.
func (s *conversations) getWelcomes(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "device")
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead { // nothing is handed out
		return a.sendCreated(http.StatusOK, welcomeList{})
	}
	all, err := s.registry.Welcomes(r.Context(), t.User, q.Get("device"))
	if err != nil {
		return err
	}
	list := welcomeList{Items: []welcome{}}
	for _, w := range all {
		list.Items = append(list.Items, showWelcome(w))
	}
	return a.sendCreated(http.StatusOK, list)
}

// postConfirmation notes that a device has joined by a Welcome. The body may name the group.
func (s *conversations) postConfirmation(a *answer, r *http.Request, p httprouter.Params) error {
	return s.change(a, r, p, "welcome", func(ctx context.Context, u vocab.Username, id uuid.UUID) error {
		var body struct {
			GroupID string `json:"groupId"`
		}
		if r.ContentLength != 0 {
			if err := s.readJSON(a, r, u, &body); err != nil {
				return err
			}
		}
		return s.registry.ConfirmWelcome(ctx, u, id, body.GroupID)
	})
}

// change applies a change to something of the user's. The path parameter name has its id.
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
