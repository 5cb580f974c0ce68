package server

import (
	"net/http"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// conversationPeers serves the servers of members who are elsewhere what it serves users' programs,
// under the URI of the conversation. The member's own key signs each request.
type conversationPeers struct {
	*federation
	served *conversations
	paused bool
}

// ofMember lets a member who is elsewhere do something in a conversation. A peer that comes too
// often is refused before anything is looked up, and one that is no member before its body is read.
func (s *conversationPeers) ofMember(do visited) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		a.setCache("no-store")
		a.addVary(whoAsks...)
		if s.paused {
			return fault.New(fault.Unavailable, "federation is paused here").WithCode("federation_paused")
		}
		if ok, after := s.limiter.Allow(s.clientOf(r).String()); !ok {
			return fault.New(fault.RateLimited, "too many requests from that address").After(max(after, time.Second))
		}
		v, err := s.beginVisit(a, r, p)
		if err != nil {
			if fault.KindOf(err) == fault.Unauthenticated {
				a.Header().Set("WWW-Authenticate", wantsSignature)
			}
			return err
		}
		return do(a, r, v)
	}
}

// beginVisit finds out who asks, and of which conversation. The body is read by then, in the room
// that all bodies for conversations share, and is the one that was signed for.
func (s *conversationPeers) beginVisit(a *answer, r *http.Request, p httprouter.Params) (*visit, error) {
	signer, err := s.introduceSigner(r)
	if err != nil {
		return nil, err
	}
	u, err := s.findResident(r, p)
	if err != nil {
		return nil, err
	}
	id, err := parseID(p, "id")
	if err != nil {
		return nil, err
	}
	at := conversation.Place{Host: u, ID: id}
	if err := s.served.registry.CheckPeer(r.Context(), at, signer); err != nil {
		return nil, err
	}
	v := &visit{conversations: s.served, caller: signer, at: at}
	if r.Method != http.MethodPost {
		return v, nil
	}
	body, err := readJSON(a, r, s.served.messages, policy.NameAddress(s.clientOf(r)), maxConversation)
	if err != nil {
		return nil, err
	}
	proven, err := s.proveSigner(r, body)
	if err == nil && proven != signer {
		err = fault.New(fault.Unauthenticated, "the signatures of the request are of several actors").WithCode("unsigned")
	}
	v.read = func(into any) error { return decodeStrictly(body, into) }
	return v, err
}

// introduceSigner returns the actor of another server who signed the request, as long as its server
// may talk to us and has not sent too much.
func (s *conversationPeers) introduceSigner(r *http.Request) (vocab.ID, error) {
	signer, err := s.verifier.Introduce(policy.PaidByAddress(r.Context(), s.clientOf(r)), r)
	if fault.KindOf(err) == fault.Gone { // which would tell that the conversation is
		err = fault.Wrap(fault.Unauthenticated, "the signing key is gone", err).WithCode("key_gone")
	}
	if err != nil {
		return "", err
	}
	if s.local.IsLocal(signer.ID) {
		return "", fault.New(fault.Unauthenticated, "a local actor does not come from outside").WithCode("unsigned")
	}
	if err := s.gate.CheckActor(signer.ID); err != nil {
		return "", err
	}
	return signer.ID, s.inbox.Count(signer.ID)
}

// showState shows the state of a conversation to a member elsewhere. How far the member has read
// it is known there.
func (s *conversations) showState(a *answer, r *http.Request, v *visit) error {
	view, err := s.registry.View(r.Context(), v.at, v.caller)
	if err != nil {
		return err
	}
	return a.sendJSON(r, showView(view, &db.Conversation{ID: view.ID, URI: view.URI, Mode: db.ModeEncrypted, Host: s.local.ID(v.at.Host)}, 0))
}
