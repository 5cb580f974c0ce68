package server

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/socket"
)

// realtime accepts signals that members of encrypted conversations on other servers send to
// users. A signal is delivered immediately or never.
type realtime struct {
	*federation
	hub    *socket.Hub
	paused bool
}

// postSignal accepts a signal. The answer tells the signer only that the signal arrived, not who
// saw it.
func (s *realtime) postSignal(a *answer, r *http.Request, p httprouter.Params) error {
	a.setCache("no-store")
	if s.paused {
		a.Header().Set("Allow", "")
		return fault.New(fault.NotAllowed, "federation is paused here").WithCode("federation_paused")
	}
	client := s.clientOf(r)
	if err := s.checkRate(client); err != nil {
		return err
	}
	if !isSigned(r) { // an unsigned request is refused before its body is read
		a.Header().Set("WWW-Authenticate", wantsSignature)
		return fault.New(fault.Unauthenticated, "sign the request").WithCode("unsigned")
	}
	body, err := readJSON(a, r, s.bodies, policy.NameAddress(client), socket.MaxSignal)
	if err != nil {
		return err
	}
	signer, err := s.inbox.Admit(policy.PaidByAddress(r.Context(), client), r, body)
	if err != nil {
		if fault.KindOf(err) == fault.Unauthenticated {
			a.Header().Set("WWW-Authenticate", wantsSignature)
		}
		return err
	}
	u, err := s.findResident(r, p)
	if err != nil {
		return err
	}
	if err := s.hub.Arrive(r.Context(), s.readerOf(r), u, signer.ID, body); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}
