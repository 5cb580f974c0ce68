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

// access identifies the sender of a request, and reads the data that this sender may see.
type access struct {
	*clients
	store      *db.Cluster
	strangers  strangers // reads users' databases for everybody except their owners
	local      *actor.Local
	verifier   Verifier
	gate       Gate
	now        func() time.Time
	secureMode bool
	sessions   sessions
}

// bearerToken returns the token in the Authorization header, and whether the request has such a
// header. It never looks for a token in the URL, because URLs are logged.
func bearerToken(r *http.Request) (string, bool) {
	lines := r.Header.Values("Authorization")
	if len(lines) != 1 {
		return "", len(lines) > 1 // two headers are an invalid token
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.TrimSpace(token), true
}

// authenticate returns the token of the request if it is valid. If it is not, the fault is
// Unauthenticated.
func (s *access) authenticate(a *answer, r *http.Request) (instance.Token, error) {
	t, err := s.findToken(r)
	return t, s.refuseToken(a, err)
}

// refuseToken returns err. If err says that the token is not valid, refuseToken also sets
// WWW-Authenticate.
func (s *access) refuseToken(a *answer, err error) error {
	if fault.KindOf(err) == fault.Unauthenticated {
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

// authorize returns the token of the request if it is valid and has one of the scopes. The fault
// is Unauthenticated if the token is not valid, and Forbidden if it has none of the scopes.
func (s *access) authorize(a *answer, r *http.Request, scopes ...string) (instance.Token, error) {
	t, err := s.authenticate(a, r)
	if err != nil {
		return t, err
	}
	if !slices.ContainsFunc(scopes, t.Has) {
		return t, refuseScope(a, scopes[0])
	}
	return t, nil
}

// refuseScope refuses a valid token that lacks the scope.
func refuseScope(a *answer, scope string) error {
	a.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+scope+`"`)
	return fault.New(fault.Forbidden, "the token is not for that").WithCode("insufficient_scope")
}

// authorizeReader returns the local user whose token the request carries, if the token may read.
// A token of the LLM engine may read too, because the LLM engine answers posts that it has read.
func (s *access) authorizeReader(a *answer, r *http.Request) (vocab.Username, error) {
	t, err := s.authorize(a, r, instance.ScopeRead, instance.ScopeLLM)
	return t.User, err
}

// whoAsks names the headers that identify the sender of a request.
var whoAsks = []string{"Authorization", "Signature", "Signature-Input"}

// cachePolicy says who may store a copy of a public document. In secure mode nobody may, because
// a cache would show the copy to everybody.
func (s *access) cachePolicy() string {
	if s.secureMode {
		return cachePrivate
	}
	return cachePublic
}

// isSigned reports whether the request carries an HTTP signature, in any dialect.
func isSigned(r *http.Request) bool { return len(r.Header.Values("Signature")) > 0 }

// checkSigner refuses a request that is signed with a key of a blocked host. A signature that
// cannot be valid says nothing about the sender, so it is ignored.
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

// admitReader refuses a sender who may read nothing of any user. Such a sender signs with a key
// of a blocked host or, in secure mode, has not proven an identity.
func (s *access) admitReader(a *answer, r *http.Request) error {
	if !s.secureMode {
		return s.checkSigner(r)
	}
	_, err := s.identifyAsker(a, r)
	if fault.KindOf(err) == fault.Unauthenticated && a.Header().Get("WWW-Authenticate") == "" {
		a.Header().Set("WWW-Authenticate", wantsSignature)
	}
	return err
}

// patience limits the wait for the sender's key from the sender's server, if the response can
// also be given without that key.
const patience = 2 * time.Second

// introduceReader admits or refuses the sender of a request for an actor. It admits a sender
// whose server does not serve the sender's key now, because that server may be waiting for this
// very actor document. The two servers would then wait for each other.
func (s *access) introduceReader(a *answer, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := s.admitReader(a, r.WithContext(ctx))
	if fault.IsPassing(err) {
		return nil
	}
	return err
}

// identifyViewer returns the actor who sent the request, or the empty id if nothing proves the
// sender. A fault means that the sender cannot be identified now, is refused, or sent an invalid
// token.
func (s *access) identifyViewer(a *answer, r *http.Request) (vocab.ID, error) {
	id, err := s.identifyAsker(a, r)
	if _, given := bearerToken(r); !given && fault.KindOf(err) == fault.Unauthenticated {
		return "", nil
	}
	return id, err
}

// identifyAsker returns the actor who sent the request: the local user whose token it carries,
// or else its signer. The fault is Unauthenticated if neither is proven. The result is stored in
// a.asker, so that the sender is identified only once for each request.
func (s *access) identifyAsker(a *answer, r *http.Request) (vocab.ID, error) {
	if a.asker == nil {
		id, err := s.proveAsker(a, r)
		a.asker = &asker{id, err}
	}
	return a.asker.id, a.asker.err
}

// asker is the sender of a request, or the error that kept it from being identified.
type asker struct {
	id  vocab.ID
	err error
}

func (s *access) proveAsker(a *answer, r *http.Request) (vocab.ID, error) {
	if _, given := bearerToken(r); given {
		// The scope of an LLM engine is not enough, because it is for the client API only.
		t, err := s.authorize(a, r, instance.ScopeRead)
		if err != nil {
			return "", err
		}
		return s.local.ID(t.User), nil
	}
	return s.proveSigner(r, nil)
}

// proveSigner returns the actor who signed the request and its body.
func (s *access) proveSigner(r *http.Request, body []byte) (vocab.ID, error) {
	claims, err := s.verifier.Claims(r, body)
	if err != nil {
		return "", err
	}
	signer, err := s.verifier.Signer(policy.PaidByAddress(r.Context(), s.clientOf(r)), claims, "")
	if err != nil {
		return "", actor.ExplainGone(err)
	}
	return signer.ID, nil
}
