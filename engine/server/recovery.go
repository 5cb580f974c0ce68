package server

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
)

// recovery accepts reports of devices that cannot go on in a conversation.
type recovery struct {
	*conversations
	budget *policy.Limiter // limits reports
}

// postReport accepts the report of a user's device that cannot go on in a conversation. It does
// not reset the conversation.
func (s *recovery) postReport(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeWrite)
	if err != nil {
		return err
	}
	if ok, after := s.budget.Allow(t.User.String()); !ok {
		return fault.New(fault.RateLimited, "your devices report too often").WithCode("rate_limited").After(after)
	}
	var body struct {
		Conversation uuid.UUID `json:"conversationId"`
		Reason       string    `json:"reason"`
		Epoch        int64     `json:"epoch"`
	}
	if err := s.readJSON(a, r, t.User, &body); err != nil {
		return err
	}
	c, err := s.registry.Find(r.Context(), t.User, body.Conversation)
	if err != nil {
		return err
	}
	if c.GroupID == "" {
		return errNoGroup.At("/conversationId")
	}
	var at *conversation.Place
	if place, isHosted := s.members.PlaceOf(c); isHosted {
		if err := s.members.CheckHost(r.Context(), place.Host); err != nil {
			return err
		}
		at = &place
	}
	if err := s.registry.Report(r.Context(), at, s.local.ID(t.User), conversation.Report{Reason: body.Reason, Epoch: body.Epoch}); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}
