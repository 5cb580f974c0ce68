package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// bearer returns the token that the request carries. Tokens in the address are never looked at: addresses are logged.
func bearer(r *http.Request) (string, bool) {
	lines := r.Header.Values("Authorization")
	if len(lines) != 1 {
		return "", len(lines) > 1 // of two none is right
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// authenticate returns the token of the request, if it holds. The fault is Unauthenticated.
func (s *Server) authenticate(a *answer, r *http.Request) (db.Token, error) {
	t, err := s.findToken(r)
	if fault.KindOf(err) == fault.Unauthenticated && err != nil {
		a.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`) // RFC 6750 §3
	}
	return t, err
}

func (s *Server) findToken(r *http.Request) (db.Token, error) {
	secret, given := bearer(r)
	if !given {
		return db.Token{}, fault.New(fault.Unauthenticated, "send a token as Authorization: Bearer").WithCode("invalid_token")
	}
	u, digest, err := ParseToken(secret)
	if err != nil {
		return db.Token{}, err
	}
	t, err := s.Store.FindToken(r.Context(), digest, s.Now())
	if err == nil && t.User != u {
		return db.Token{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	}
	return t, err
}

// authorize returns the token of the request, if it has one of the scopes. The fault is Unauthenticated or Forbidden.
func (s *Server) authorize(a *answer, r *http.Request, scopes ...string) (db.Token, error) {
	t, err := s.authenticate(a, r)
	if err != nil {
		return t, err
	}
	if !slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(t.Scopes, scope) }) {
		return t, insufficient(a, scopes[0])
	}
	return t, nil
}

// insufficient refuses a token that holds but is for other things.
func insufficient(a *answer, scope string) error {
	a.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
	return fault.New(fault.Forbidden, "the token is not for that").WithCode("insufficient_scope")
}

// reader returns the actor of the local user whose token the request carries, if it may read: the LLM engine, too,
// answers what it has read.
func (s *Server) reader(a *answer, r *http.Request) (vocab.Username, error) {
	t, err := s.authorize(a, r, db.ScopeRead, db.ScopeLLM)
	return t.User, err
}

// isSigned tells whether the request carries an HTTP signature, in whichever dialect.
func isSigned(r *http.Request) bool { return len(r.Header.Values("Signature")) > 0 }

// checkSigner refuses a request that is signed with a key of a blocked host. A signature that cannot hold says nothing
// about who asks.
func (s *Server) checkSigner(r *http.Request) error {
	if !isSigned(r) {
		return nil
	}
	claims, err := s.Verifier.Claims(r, nil)
	if err != nil {
		return nil
	}
	for _, c := range claims {
		if key := vocab.ID(c.KeyID); !s.Local.IsLocal(key) {
			if err := s.Gate.Check(key.Host()); err != nil {
				return err
			}
		}
	}
	return nil
}

// viewer returns the actor who asks: a local user by its token, or whoever signed the request. Who cannot prove to be
// anybody is nobody, the empty id; a fault means that it cannot be told now, or that the asker is not welcome.
func (s *Server) viewer(a *answer, r *http.Request) (vocab.ID, error) {
	if _, given := bearer(r); given {
		u, err := s.reader(a, r)
		if err != nil {
			return "", err
		}
		return s.Local.ID(u), nil
	}
	if !isSigned(r) {
		return "", nil
	}
	claims, err := s.Verifier.Claims(r, nil)
	if err != nil {
		return nobodyUnless(err)
	}
	signer, err := s.Verifier.Signer(r.Context(), claims, "")
	if err != nil {
		return nobodyUnless(err)
	}
	return signer.ID, nil
}

func nobodyUnless(err error) (vocab.ID, error) {
	switch fault.KindOf(err) {
	case fault.Unauthenticated, fault.Gone:
		return "", nil
	}
	return "", err
}
