package server

import (
	"net/http"
	"strconv"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// takeCommit returns a function that accepts a commit, which ends an epoch of a conversation.
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
	if v.own == nil || v.own.Host != "" {
		return conversation.ErrHasHost
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

// takeReset begins a reset of a conversation. If the body has the GroupInfo of the next group,
// takeReset completes the reset.
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

// showGroupInfo shows a member the GroupInfo of the MLS group, and the epoch of the group.
func (s *conversations) showGroupInfo(a *answer, r *http.Request, v *visit) error {
	info, epoch, err := v.groupInfo(r.Context())
	if err != nil {
		return err
	}
	return a.sendJSON(r, groupInfoAnswer{epoch, info})
}
