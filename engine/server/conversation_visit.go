package server

import (
	"context"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// visit is a request of a member to a conversation. The request comes either from a client of a
// local user or from the server of a remote member. In the first case, the conversation may have
// any host. In the second case, its host is local.
type visit struct {
	*conversations
	read func(into any) error // decodes the body

	// For a conversation that a client names and that may have any host:
	user vocab.Username     // the local user whose client sent the request
	own  *user.Conversation // the conversation in the user's database; nil if the field at names the conversation

	// For a conversation with a local host:
	caller vocab.ID           // the member
	at     conversation.Place // the host and the id of the conversation
	size   int                // for a remote member: bytes of the body
}

var errNoGroup = fault.New(fault.Unprocessable, "the conversation has no MLS group").WithCode("not_encrypted")

type visited func(a *answer, r *http.Request, v *visit) error

// ofUser lets a user's client do something in a conversation that has an MLS group. If the
// registry knows that the user hosts the conversation, ofUser does not look it up.
func (s *conversations) ofUser(scope string, do visited) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		u, id, err := s.authorizeFor(a, r, p, scope)
		if err != nil {
			return err
		}
		v := &visit{conversations: s, read: func(into any) error { return s.readJSON(a, r, u, into) }}
		at := conversation.Place{Host: u, ID: id}
		if s.registry.IsHosted(at) {
			v.caller, v.at = s.local.ID(u), at
			return do(a, r, v)
		}
		v.user = u
		if v.own, err = s.registry.Find(r.Context(), u, id); err != nil {
			return err
		}
		if v.own.GroupID == "" {
			return errNoGroup
		}
		return do(a, r, v)
	}
}

func (v *visit) commit(ctx context.Context, c conversation.Commit) (conversation.Accepted, error) {
	if v.own != nil {
		return v.members.Commit(ctx, v.user, v.own, c)
	}
	c.Caller = v.caller
	return v.registry.Commit(ctx, v.at, c)
}

func (v *visit) send(ctx context.Context, content []byte) (conversation.Accepted, error) {
	if v.own != nil {
		return v.members.Send(ctx, v.user, v.own, content)
	}
	return v.registry.Send(ctx, v.at, conversation.Message{Caller: v.caller, Content: content})
}

func (v *visit) askReset(ctx context.Context) (group string, err error) {
	if v.own != nil {
		return v.members.AskReset(ctx, v.user, v.own)
	}
	return v.registry.AskReset(ctx, v.at, v.caller)
}

func (v *visit) reset(ctx context.Context, groupInfo []byte) (conversation.Accepted, error) {
	if v.own != nil {
		return v.members.Reset(ctx, v.user, v.own, groupInfo)
	}
	return v.registry.Reset(ctx, v.at, v.caller, groupInfo)
}

func (v *visit) readLog(ctx context.Context, after int64) (entries []user.LogEntry, more bool, err error) {
	if v.own != nil {
		return v.members.ReadLog(ctx, v.user, v.own, after)
	}
	return v.registry.ReadLog(ctx, v.at, v.caller, after)
}

func (v *visit) groupInfo(ctx context.Context) (info []byte, epoch int64, err error) {
	if v.own != nil {
		return v.members.GroupInfo(ctx, v.user, v.own)
	}
	return v.registry.GroupInfo(ctx, v.at, v.caller)
}
