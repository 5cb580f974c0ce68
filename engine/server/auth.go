package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// access finds out who asks, and reads what that one may see.
type access struct {
	*clients
	store      *db.Cluster
	strangers  strangers // the store, for everybody but the users
	local      *actor.Local
	verifier   Verifier
	gate       Gate
	now        func() time.Time
	secureMode bool
	sessions   sessions
}

// bearerToken returns the token that the request carries. Tokens in the address are never looked
// at: addresses are logged.
func bearerToken(r *http.Request) (string, bool) {
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
func (s *access) authenticate(a *answer, r *http.Request) (instance.Token, error) {
	t, err := s.findToken(r)
	return t, s.refuseToken(a, err)
}

// refuseToken returns err, and says what to send when it is that the token does not hold.
func (s *access) refuseToken(a *answer, err error) error {
	if fault.KindOf(err) == fault.Unauthenticated && err != nil {
		a.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`) // RFC 6750 §3
	}
	return err
}

func (s *access) findToken(r *http.Request) (instance.Token, error) {
	secret, given := bearerToken(r)
	if !given {
		return instance.Token{}, fault.New(fault.Unauthenticated, "send a token as Authorization: Bearer").WithCode("invalid_token")
	}
	return s.tokenOf(r.Context(), secret)
}

// authorize returns the token of the request, if it has one of the scopes. The fault is
// Unauthenticated or Forbidden.
func (s *access) authorize(a *answer, r *http.Request, scopes ...string) (instance.Token, error) {
	t, err := s.authenticate(a, r)
	if err != nil {
		return t, err
	}
	if !slices.ContainsFunc(scopes, func(scope string) bool { return slices.Contains(t.Scopes, scope) }) {
		return t, refuseScope(a, scopes[0])
	}
	return t, nil
}

// refuseScope refuses a token that holds but is for other things.
func refuseScope(a *answer, scope string) error {
	a.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
	return fault.New(fault.Forbidden, "the token is not for that").WithCode("insufficient_scope")
}

// authorizeReader returns the actor of the local user whose token the request carries, if it may
// read: the LLM engine, too, answers what it has read.
func (s *access) authorizeReader(a *answer, r *http.Request) (vocab.Username, error) {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	return t.User, err
}

// whoAsks are the headers that tell who asks.
var whoAsks = []string{"Authorization", "Signature", "Signature-Input"}

// cachePolicy says who may keep a copy of what everybody may see: in secure mode that is not
// everybody.
func (s *access) cachePolicy() string {
	if s.secureMode {
		return cachePrivate
	}
	return cachePublic
}

// isSigned reports whether the request carries an HTTP signature, in whichever dialect.
func isSigned(r *http.Request) bool { return len(r.Header.Values("Signature")) > 0 }

// checkSigner refuses a request that is signed with a key of a blocked host. A signature that
// cannot hold says nothing about who asks.
func (s *access) checkSigner(r *http.Request) error {
	if !isSigned(r) {
		return nil
	}
	claims, err := s.verifier.Claims(r, nil)
	if err != nil {
		return nil
	}
	for _, c := range claims {
		if key := vocab.IDOf(c.KeyID); !s.local.IsLocal(key) {
			if err := s.gate.Check(key.Host()); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsSignature asks for a signed request (draft-cavage-http-signatures-12 §3.1.1).
const wantsSignature = `Signature realm="lightweb",headers="(request-target) host date"`

// admitReader refuses who may read nothing of any user: who signs with a key of a blocked host,
// and in secure mode whoever has not proven who it is.
func (s *access) admitReader(a *answer, r *http.Request) error {
	if !s.secureMode {
		return s.checkSigner(r)
	}
	_, err := s.identifyAsker(a, r)
	if fault.KindOf(err) == fault.Unauthenticated && err != nil && a.Header().Get("WWW-Authenticate") == "" {
		a.Header().Set("WWW-Authenticate", wantsSignature)
	}
	return err
}

// patience is how long an answer waits for the server of who asks to show its key, when it need
// not.
const patience = 2 * time.Second

// introduceReader admits who asks for an actor. A server that does not show its key now may be
// waiting for this very document, without which it cannot know ours: it gets it, or the two would
// wait for each other.
func (s *access) introduceReader(a *answer, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := s.admitReader(a, r.WithContext(ctx))
	if isPassing(err) {
		return nil
	}
	return err
}

// isPassing reports whether an error says nothing about who asks, only that it cannot be told now.
func isPassing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited:
		return true
	}
	return false
}

// identifyViewer returns the actor who asks. A viewer without proof is nobody, the empty id; a
// fault means that it cannot be told now, or that the asker is not welcome.
func (s *access) identifyViewer(a *answer, r *http.Request) (vocab.ID, error) {
	id, err := s.identifyAsker(a, r)
	if _, given := bearerToken(r); !given && err != nil && fault.KindOf(err) == fault.Unauthenticated {
		return "", nil
	}
	return id, err
}

// identifyAsker returns the actor who asks: a local user by its token, or whoever signed the
// request. The fault is Unauthenticated when nobody can be proven to. It is found out once.
func (s *access) identifyAsker(a *answer, r *http.Request) (vocab.ID, error) {
	if a.asker == nil {
		id, err := s.proveAsker(a, r)
		a.asker = &asker{id, err}
	}
	return a.asker.id, a.asker.err
}

// asker is who sent a request, or why nobody can tell.
type asker struct {
	id  vocab.ID
	err error
}

func (s *access) proveAsker(a *answer, r *http.Request) (vocab.ID, error) {
	if _, given := bearerToken(r); given {
		t, err := s.authorize(a, r, instance.ScopeRead) // not an LLM engine's, which is shown feeds and groups alone
		if err != nil {
			return "", err
		}
		return s.local.ID(t.User), nil
	}
	return s.proveSigner(r, nil)
}

// proveSigner returns the actor who signed the request with its body.
func (s *access) proveSigner(r *http.Request, body []byte) (vocab.ID, error) {
	claims, err := s.verifier.Claims(r, body)
	if err != nil {
		return "", err
	}
	signer, err := s.verifier.Signer(policy.PaidByAddress(r.Context(), s.clientOf(r)), claims, "")
	if fault.KindOf(err) == fault.Gone { // which would tell that what is asked for is
		return "", fault.Wrap(fault.Unauthenticated, "the signing key is gone", err).WithCode("key_gone")
	}
	if err != nil {
		return "", err
	}
	return signer.ID, nil
}
