package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxConversation is how many bytes a request to a conversation has: a commit with its GroupInfo
// and its Welcomes, in base64.
const maxConversation = 8 << 20

// conversations serves users' programs their encrypted conversations and key packages.
type conversations struct {
	*clientAPI
	registry *conversation.Registry
	messages *policy.Pool // bodies
}

// readJSON reads a body that holds these members and no others. The user pays for it.
func (s *conversations) readJSON(a *answer, r *http.Request, u vocab.Username, into any) error {
	body, err := readJSON(a, r, s.messages, u.String(), maxConversation)
	if err != nil {
		return err
	}
	if _, err := vocab.ParseDoc(body); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fault.Wrap(fault.Unprocessable, "the body has an unknown member, or one of another type; messages of MLS are base64 with padding", err).WithCode("invalid_parameter")
	}
	return nil
}

// begin authorizes a request to a conversation, and finds where that is put in order.
func (s *conversations) begin(a *answer, r *http.Request, p httprouter.Params, scope string) (vocab.Username, *db.Conversation, conversation.Place, error) {
	var at conversation.Place
	t, err := s.authorize(a, r, scope)
	if err != nil {
		return t.User, nil, at, err
	}
	id, err := parseID(p, "id")
	if err != nil {
		return t.User, nil, at, err
	}
	c, err := s.registry.Find(r.Context(), t.User, id)
	if err != nil {
		return t.User, nil, at, err
	}
	host, isLocal := s.local.Owner(c.Host)
	if !isLocal || c.Mode != db.ModeEncrypted {
		return t.User, c, at, fault.New(fault.Unprocessable, "the conversation is not put in order on this server").WithCode("not_hosted_here")
	}
	return t.User, c, conversation.Place{Host: host, ID: id}, nil
}

// parseID returns the UUID that a path names.
func parseID(p httprouter.Params, name string) (uuid.UUID, error) {
	id, err := uuid.Parse(p.ByName(name))
	if err != nil || id.String() != p.ByName(name) {
		return uuid.Nil, errNothing
	}
	return id, nil
}

// sendCreated answers with what was made.
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

// postConversation makes a conversation out of a new MLS group.
func (s *conversations) postConversation(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		GroupInfo []byte `json:"groupInfo"`
	}
	if err := s.readJSON(a, r, t.User, &body); err != nil {
		return err
	}
	v, err := s.registry.Create(r.Context(), t.User, body.GroupInfo)
	if err != nil {
		return err
	}
	a.Header().Set("Location", "/api/conversations/"+v.ID.String())
	return a.sendCreated(http.StatusCreated, showView(v, s.local.ID(t.User), 0, 0))
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
	list := conversationList{Items: []listedConversation{}}
	all, list.Next = cutRows(all, conversationsPage, scope, func(c db.Conversation) db.Place { return db.Place{At: c.CreatedAt, ID: c.ID} })
	for _, c := range all {
		list.Items = append(list.Items, listedConversation{c.ID, c.URI, c.Mode, c.Host, c.GroupID, c.ReadSeq, c.CreatedAt})
	}
	linkNext(a, r, q, list.Next)
	return a.sendJSON(r, list)
}

// getConversation shows the state of a conversation to a member.
func (s *conversations) getConversation(a *answer, r *http.Request, p httprouter.Params) error {
	u, c, at, err := s.begin(a, r, p, instance.ScopeRead)
	if err != nil {
		return err
	}
	me := s.local.ID(u)
	v, err := s.registry.View(r.Context(), at, me)
	if err != nil {
		return err
	}
	unread, err := s.registry.Unread(r.Context(), at, me, c.ReadSeq)
	if err != nil {
		return err
	}
	return a.sendJSON(r, showView(v, c.Host, c.ReadSeq, unread))
}

// postCommit ends an epoch of a conversation.
func (s *conversations) postCommit(isExternal bool) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		u, _, at, err := s.begin(a, r, p, instance.ScopeWrite)
		if err != nil {
			return err
		}
		key, err := idempotencyKey(r)
		if err != nil {
			return err
		}
		var body struct {
			Commit    []byte   `json:"commit"`
			GroupInfo []byte   `json:"groupInfo"`
			Welcomes  [][]byte `json:"welcomes"`
		}
		if err := s.readJSON(a, r, u, &body); err != nil {
			return err
		}
		accepted, err := s.registry.Commit(r.Context(), at, conversation.Commit{Caller: s.local.ID(u), Key: key, Message: body.Commit, GroupInfo: body.GroupInfo, Welcomes: body.Welcomes, External: isExternal})
		if err != nil {
			return err
		}
		return a.sendAccepted(accepted)
	}
}

// postMessage sends ciphertext to a conversation.
func (s *conversations) postMessage(a *answer, r *http.Request, p httprouter.Params) error {
	u, _, at, err := s.begin(a, r, p, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		Message []byte `json:"message"`
	}
	if err := s.readJSON(a, r, u, &body); err != nil {
		return err
	}
	accepted, err := s.registry.Send(r.Context(), at, conversation.Message{Caller: s.local.ID(u), Content: body.Message})
	if err != nil {
		return err
	}
	return a.sendAccepted(accepted)
}

// postReset begins a reset of a conversation, or ends it with the GroupInfo of its next group.
func (s *conversations) postReset(a *answer, r *http.Request, p httprouter.Params) error {
	u, _, at, err := s.begin(a, r, p, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		GroupInfo []byte `json:"groupInfo"`
	}
	if err := s.readJSON(a, r, u, &body); err != nil {
		return err
	}
	if body.GroupInfo == nil {
		group, err := s.registry.AskReset(r.Context(), at, s.local.ID(u))
		if err != nil {
			return err
		}
		return a.sendCreated(http.StatusAccepted, resetAnswer{group})
	}
	accepted, err := s.registry.Reset(r.Context(), at, s.local.ID(u), body.GroupInfo)
	if err != nil {
		return err
	}
	return a.sendAccepted(accepted)
}

// putRead notes how far the user has read a conversation.
func (s *conversations) putRead(a *answer, r *http.Request, p httprouter.Params) error {
	u, c, _, err := s.begin(a, r, p, instance.ScopeWrite)
	if err != nil {
		return err
	}
	var body struct {
		Seq int64 `json:"seq"`
	}
	if err := s.readJSON(a, r, u, &body); err != nil {
		return err
	}
	if body.Seq < 0 {
		return fault.New(fault.Unprocessable, "seq is a number of the log").WithCode("invalid_parameter").At("/seq")
	}
	if err := s.registry.MarkRead(r.Context(), u, c.ID, body.Seq); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// getLog shows a member the messages of a conversation, the oldest first.
func (s *conversations) getLog(a *answer, r *http.Request, p httprouter.Params) error {
	u, _, at, err := s.begin(a, r, p, instance.ScopeRead)
	if err != nil {
		return err
	}
	q, err := readQuery(r, "after")
	if err != nil {
		return err
	}
	var after int64
	if q.Has("after") {
		if after, err = strconv.ParseInt(q.Get("after"), 10, 64); err != nil || after < 0 {
			return fault.New(fault.Invalid, "after is a number of the log").WithCode("bad_query")
		}
	}
	entries, more, err := s.registry.ReadLog(r.Context(), at, s.local.ID(u), after)
	if err != nil {
		return err
	}
	return a.sendJSON(r, logPage{showLog(entries), more})
}

// getGroupInfo shows a member the state of the MLS group.
func (s *conversations) getGroupInfo(a *answer, r *http.Request, p httprouter.Params) error {
	u, _, at, err := s.begin(a, r, p, instance.ScopeRead)
	if err != nil {
		return err
	}
	info, epoch, err := s.registry.GroupInfo(r.Context(), at, s.local.ID(u))
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
	all, err := s.registry.Welcomes(r.Context(), t.User, q.Get("device"))
	if err != nil {
		return err
	}
	list := welcomeList{Items: []welcome{}}
	for _, w := range all {
		list.Items = append(list.Items, welcome{w.ID, w.Conversation, w.URI, w.KeyPackage, w.Content, w.CreatedAt.UTC().Format(time.RFC3339Nano)})
	}
	return a.sendCreated(http.StatusOK, list)
}

// postConfirmation notes that a device has joined by a Welcome.
func (s *conversations) postConfirmation(a *answer, r *http.Request, p httprouter.Params) error {
	return s.change(a, r, p, "welcome", s.registry.ConfirmWelcome)
}

// change changes something of the user's that the parameter of that name is the id of.
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
