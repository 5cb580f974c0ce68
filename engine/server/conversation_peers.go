package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// conversationPeers serves the servers of remote members. Under the URI of a conversation, these
// servers can commit, send and read as the clients of local members can. The member's own key
// signs each request.
type conversationPeers struct {
	*federation
	served *conversations
	paused bool
}

// ofMember lets a remote member do something in a conversation. A peer that sends too many
// requests is refused before anything is looked up. A sender that is no member is refused before
// its body is read. The member's domain pays for the fetches from other servers that the request
// causes.
func (s *conversationPeers) ofMember(do visited) handle {
	return func(a *answer, r *http.Request, p httprouter.Params) error {
		a.setCache("no-store")
		a.addVary(whoAsks...)
		if s.paused {
			return fault.New(fault.Unavailable, "federation is paused here").WithCode("federation_paused")
		}
		if err := s.checkRate(s.clientOf(r)); err != nil {
			return err
		}
		v, err := s.beginVisit(a, r, p)
		if err != nil {
			if fault.KindOf(err) == fault.Unauthenticated {
				a.Header().Set("WWW-Authenticate", wantsSignature)
			}
			return err
		}
		if err := do(a, r.WithContext(policy.PaidByDomain(r.Context(), v.caller.Host())), v); err != nil {
			return err
		}
		s.served.registry.Storage.Count(v.at.Host, v.caller, v.size)
		return nil
	}
}

// beginVisit identifies the member and the conversation of a request. It reads the body of a
// POST, and checks that the signature covers the body. The body counts against the pool that all
// bodies for conversations share.
func (s *conversationPeers) beginVisit(a *answer, r *http.Request, p httprouter.Params) (*visit, error) {
	signer, err := s.introduceSigner(r)
	if err != nil {
		return nil, err
	}
	u, err := s.findHost(r, p)
	if err != nil {
		return nil, err
	}
	id, err := parseID(p, "id")
	if err != nil {
		return nil, err
	}
	at := conversation.Place{Host: u, ID: id}
	if err := s.served.registry.CheckPeer(r.Context(), s.readerOf(r), at, signer); err != nil {
		return nil, err
	}
	v := &visit{conversations: s.served, caller: signer, at: at}
	if r.Method != http.MethodPost {
		return v, nil
	}
	if err := s.served.registry.Storage.Check(u, signer); err != nil {
		return nil, err
	}
	body, err := readJSON(a, r, s.served.messages, policy.NameAddress(s.clientOf(r)), maxConversation)
	if err != nil {
		return nil, err
	}
	proven, err := s.proveSigner(r, body)
	if err == nil && proven != signer {
		err = fault.New(fault.Unauthenticated, "the signatures of the request are of several actors").WithCode("unsigned")
	}
	v.size = len(body)
	v.read = func(into any) error { return vocab.ParseInto(body, into) }
	return v, err
}

// findHost returns the user that the path names. It fails as findResident does, but the answer for
// a suspended user is not 404, which other servers may take as final.
func (s *conversationPeers) findHost(r *http.Request, p httprouter.Params) (vocab.Username, error) {
	u, err := s.findResident(r, p)
	if fault.KindOf(err) == fault.NotFound {
		if suspended := s.served.members.CheckHost(r.Context(), u); fault.KindOf(suspended) == fault.Unavailable {
			err = suspended
		}
	}
	return u, err
}

// introduceSigner returns the remote actor who signed the request. It refuses an actor that is
// blocked, and one that has sent too much.
func (s *conversationPeers) introduceSigner(r *http.Request) (vocab.ID, error) {
	signer, err := s.verifier.Introduce(policy.PaidByAddress(r.Context(), s.clientOf(r)), r)
	if err != nil {
		return "", actor.ExplainGone(err)
	}
	if s.local.IsLocal(signer.ID) {
		return "", fault.New(fault.Unauthenticated, "a local actor does not come from outside").WithCode("unsigned")
	}
	if err := s.gate.CheckActor(signer.ID); err != nil {
		return "", err
	}
	return signer.ID, s.inbox.Count(signer.ID)
}

// showState shows the state of a conversation to a remote member. It does not tell how far the
// member has read, because the member's own server stores that.
func (s *conversations) showState(a *answer, r *http.Request, v *visit) error {
	view, err := s.registry.View(r.Context(), v.at, v.caller)
	if err != nil {
		return err
	}
	return a.sendJSON(r, showView(view, &user.Conversation{ID: view.ID, URI: view.URI, Mode: user.ModeEncrypted, Host: s.local.ID(v.at.Host)}, 0))
}
