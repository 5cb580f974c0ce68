package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

// bearer returns the token that the request carries. Tokens in the address are never looked at:
// addresses are logged.
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
	u, digest, err := token.Parse(secret)
	if err != nil {
		return db.Token{}, err
	}
	t, err := s.Store.FindToken(r.Context(), digest, s.Now())
	if err == nil && t.User != u {
		return db.Token{}, fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	}
	return t, err
}

// authorize returns the token of the request, if it has one of the scopes. The fault is
// Unauthenticated or Forbidden.
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

// reader returns the actor of the local user whose token the request carries, if it may read: the
// LLM engine, too, answers what it has read.
func (s *Server) reader(a *answer, r *http.Request) (vocab.Username, error) {
	t, err := s.authorize(a, r, db.ScopeRead, db.ScopeLLM)
	return t.User, err
}

// whoAsks are the headers that tell who asks.
var whoAsks = []string{"Authorization", "Signature", "Signature-Input"}

// shared says who may keep a copy of what everybody may see: in secure mode that is not everybody.
func (s *Server) shared() string {
	if s.SecureMode {
		return cachePrivate
	}
	return cachePublic
}

// isSigned tells whether the request carries an HTTP signature, in whichever dialect.
func isSigned(r *http.Request) bool { return len(r.Header.Values("Signature")) > 0 }

// checkSigner refuses a request that is signed with a key of a blocked host. A signature that
// cannot hold says nothing about who asks.
func (s *Server) checkSigner(r *http.Request) error {
	if !isSigned(r) {
		return nil
	}
	claims, err := s.Verifier.Claims(r, nil)
	if err != nil {
		return nil
	}
	for _, c := range claims {
		if key := vocab.IDOf(c.KeyID); !s.Local.IsLocal(key) {
			if err := s.Gate.Check(key.Host()); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsSignature asks for a signed request (draft-cavage-http-signatures-12 §3.1.1).
const wantsSignature = `Signature realm="lightweb",headers="(request-target) host date"`

// admit refuses who may read nothing of any user: who signs with a key of a blocked host, and in
// secure mode whoever has not proven who it is.
func (s *Server) admit(a *answer, r *http.Request) error {
	if !s.SecureMode {
		return s.checkSigner(r)
	}
	_, err := s.asker(a, r)
	if fault.KindOf(err) == fault.Unauthenticated && err != nil && a.Header().Get("WWW-Authenticate") == "" {
		a.Header().Set("WWW-Authenticate", wantsSignature)
	}
	return err
}

// patience is how long an answer waits for the server of who asks to show its key, when it need
// not.
const patience = 2 * time.Second

// introduce admits who asks for an actor. A server that does not show its key now may be waiting
// for this very document, without which it cannot know ours: it gets it, or the two would wait for
// each other.
func (s *Server) introduce(a *answer, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := s.admit(a, r.WithContext(ctx))
	if passing(err) {
		return nil
	}
	return err
}

// passing tells whether an error says nothing about who asks, only that it cannot be told now.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited:
		return true
	}
	return false
}

// viewer returns the actor who asks. Who cannot prove to be anybody is nobody, the empty id; a
// fault means that it cannot be told now, or that the asker is not welcome.
func (s *Server) viewer(a *answer, r *http.Request) (vocab.ID, error) {
	id, err := s.asker(a, r)
	if _, given := bearer(r); !given && err != nil && fault.KindOf(err) == fault.Unauthenticated {
		return "", nil
	}
	return id, err
}

// asker returns the actor who asks: a local user by its token, or whoever signed the request. The
// fault is Unauthenticated when nobody can be proven to. It is found out once.
func (s *Server) asker(a *answer, r *http.Request) (vocab.ID, error) {
	if a.asker == nil {
		id, err := s.prove(a, r)
		a.asker = &asker{id, err}
	}
	return a.asker.id, a.asker.err
}

// asker is who sent a request, or why nobody can tell.
type asker struct {
	id  vocab.ID
	err error
}

func (s *Server) prove(a *answer, r *http.Request) (vocab.ID, error) {
	if _, given := bearer(r); given {
		t, err := s.authorize(a, r, db.ScopeRead) // not an LLM engine's, which is shown feeds and groups alone
		if err != nil {
			return "", err
		}
		return s.Local.ID(t.User), nil
	}
	claims, err := s.Verifier.Claims(r, nil)
	if err != nil {
		return "", err
	}
	signer, err := s.Verifier.Signer(policy.PaidByAddress(r.Context(), s.client(r)), claims, "")
	if fault.KindOf(err) == fault.Gone { // which would tell that what is asked for is
		return "", fault.Wrap(fault.Unauthenticated, "the signing key is gone", err).WithCode("key_gone")
	}
	if err != nil {
		return "", err
	}
	return signer.ID, nil
}
