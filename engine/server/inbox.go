package server

import (
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// federation takes what other servers send, and tells them who of theirs follows a user.
type federation struct {
	*access
	inbox     Inbox
	limiter   *policy.Limiter // of requests to inboxes, by client
	bodies    *policy.Pool
	bodyLimit int64
}

// postInbox takes an activity from another server, for one user or, without a name in the path, for
// all. A peer that comes too often is refused before anything is read.
func (s *federation) postInbox(a *answer, r *http.Request, p httprouter.Params) error {
	client := s.clientOf(r)
	if ok, after := s.limiter.Allow(client.String()); !ok {
		return fault.New(fault.RateLimited, "too many requests from that address").After(max(after, time.Second))
	}
	var u vocab.Username
	if name := p.ByName("user"); name != "" {
		var err error
		if u, err = vocab.ParseUsername(name); err != nil {
			return errNothing
		}
	}
	body, err := readBody(a, r, s.bodies, policy.NameAddress(client), s.bodyLimit)
	if err != nil {
		return err
	}
	if err := s.inbox.Receive(policy.PaidByAddress(r.Context(), client), r, body, u); err != nil {
		if fault.KindOf(err) == fault.Unauthenticated {
			a.Header().Set("WWW-Authenticate", `Signature realm="lightweb",headers="(request-target) host date digest"`)
		}
		return err
	}
	a.setCache("no-store")
	a.WriteHeader(http.StatusAccepted)
	return nil
}

// pausedInbox takes nothing from other servers, which come again later (ActivityPub §5.2). Of a
// user's own inbox the owner may still read.
func pausedInbox(a *answer, _ *http.Request, p httprouter.Params) error {
	allow := ""
	if p.ByName("user") != "" {
		allow = "GET, HEAD"
	}
	a.Header().Set("Allow", allow) // RFC 9110 §15.5.6
	return fault.New(fault.NotAllowed, "federation is paused here").WithCode("federation_paused")
}
