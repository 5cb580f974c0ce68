package server

import (
	"bytes"
	"net/http"
	"net/netip"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// federation accepts activities from other servers, and tells them which of their actors follow
// a user.
type federation struct {
	*access
	inbox     Inbox
	limiter   *policy.Limiter // limits requests to inboxes, conversations and realtime, and claims of key packages, by client
	bodies    *policy.Pool
	bodyLimit int64

	mlsBodyLimit int64
}

// checkRate refuses a client that sends too many requests.
func (s *federation) checkRate(client netip.Prefix) error {
	if ok, after := s.limiter.Allow(client.String()); !ok {
		return fault.New(fault.RateLimited, "too many requests from that address").After(max(after, time.Second))
	}
	return nil
}

// postInbox accepts an activity from another server. If the path names a user, the activity is for
// that user. Otherwise it is for every local user that it concerns. A client that sends too many
// requests is refused before anything is read.
func (s *federation) postInbox(a *answer, r *http.Request, p httprouter.Params) error {
	client := s.clientOf(r)
	if err := s.checkRate(client); err != nil {
		return err
	}
	var u vocab.Username
	if name := p.ByName("user"); name != "" {
		var err error
		if u, err = vocab.ParseUsername(name); err != nil {
			return errNothing
		}
	}
	if err := s.receive(a, r, client, u); err != nil {
		if fault.KindOf(err) == fault.Unauthenticated {
			a.Header().Set("WWW-Authenticate", `Signature realm="lightweb",headers="(request-target) host date digest"`)
		}
		return err
	}
	a.setCache("no-store")
	a.WriteHeader(http.StatusAccepted)
	return nil
}

// receive reads an activity, and gives it to the inbox. If Content-Length exceeds the usual
// limit, it reads the body only after the inbox has identified the sender.
func (s *federation) receive(a *answer, r *http.Request, client netip.Prefix, u vocab.Username) error {
	ctx := policy.PaidByAddress(r.Context(), client)
	if r.ContentLength > s.bodyLimit && r.ContentLength <= s.mlsBodyLimit {
		err := s.inbox.ReceiveLarge(ctx, r, u, func(payer string) ([]byte, error) {
			return readWithin(a, r, s.bodies, payer, s.mlsBodyLimit, r.ContentLength+bytes.MinRead, largeTime)
		})
		if a.held == nil && fault.KindOf(err) == fault.Unavailable {
			a.bodyLimit = s.mlsBodyLimit // the sender is told to retry, so nothing is wrong with the body
		}
		return err
	}
	body, err := readBody(a, r, s.bodies, policy.NameAddress(client), s.bodyLimit)
	if err != nil {
		return err
	}
	return s.inbox.Receive(ctx, r, body, u)
}

// pausedInbox refuses activities while federation is paused. Other servers send them again later
// (ActivityPub §5.2). The owner of an inbox may still read it.
func pausedInbox(a *answer, _ *http.Request, p httprouter.Params) error {
	allow := ""
	if p.ByName("user") != "" {
		allow = "GET, HEAD"
	}
	a.Header().Set("Allow", allow) // RFC 9110 §15.5.6
	return fault.New(fault.NotAllowed, "federation is paused here").WithCode("federation_paused")
}
