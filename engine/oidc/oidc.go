// Package oidc identifies people by asking an OpenID provider. It uses the authorization code
// flow of OpenID Connect, with PKCE. It does not know which account on this server an identity
// belongs to.
package oidc

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of the data from a provider, and from a browser that comes back from it.
const (
	MaxIssuer  = 512 // bytes
	MaxSubject = 255 // OpenID Connect Core §2
	maxCode    = 4096
)

// Config names the provider, and has the data of the client that the provider has registered for
// this server.
type Config struct {
	Issuer       string // the provider's issuer, spelled as in the provider's documents
	ClientID     string
	ClientSecret string // empty for a public client
	Callback     string // the address to which the provider sends the browser back
	Client       *http.Client
	Now          func() time.Time
}

// Identity names one person at a provider permanently. A name or an address would not do so,
// because the provider may give it to another person later.
type Identity struct{ Issuer, Subject string }

// Provider is an OpenID provider. The provider's description of itself is fetched when it is
// first needed, and then kept in memory. A Provider is safe for concurrent use.
type Provider struct {
	Config
	pending *pending
	asking  chan struct{} // a lock on the fields below
	known   *oidc.Provider
	failure error     // the error of the last fetch
	again   time.Time // the description is not fetched again before this time
}

// New returns a provider. It fetches nothing yet.
func New(c Config) *Provider {
	return &Provider{Config: c, pending: newPending(c.Now), asking: make(chan struct{}, 1)}
}

// BeginLogin begins a login. It returns the address to which the browser is sent, and a secret for
// this browser alone, which the browser shows when it comes back. The login counts against the
// payer. The parameter page is the page that FinishLogin returns in the end. The fault is
// Unavailable if the provider does not answer as it should, or too many logins are under way.
func (p *Provider) BeginLogin(ctx context.Context, payer, page string) (location, browser string, err error) {
	known, err := p.learnProvider(ctx)
	if err != nil {
		return "", "", err
	}
	state, l, ok := p.pending.addLogin(payer, page)
	if !ok {
		return "", "", fault.New(fault.Unavailable, "too many logins are under way").After(lifetime)
	}
	return p.asClient(known).AuthCodeURL(state, oidc.Nonce(l.nonce), oauth2.S256ChallengeOption(l.verifier)), l.browser, nil
}

// Return is the data that a browser brings back from the provider.
type Return struct {
	Browser, State, Code string
	Issuer               string // the issuer that claims to have sent the browser; may be empty (RFC 9207)
	Refusal              string // the error code with which the provider refused the login; empty if it did not refuse it
}

// errUnproven returns the answer to a login that proves no identity. The answer is always the
// same. The parameters why and cause are only for the log.
func errUnproven(why string, cause error) error {
	return fault.Wrap(fault.Unauthenticated, "the login could not be proven: begin it again", fmt.Errorf("%s: %w", why, cause)).WithCode("login_not_proven")
}

var errNot = errors.New("it is another one")

// FinishLogin ends a login, and returns the proven identity and the page of BeginLogin. A login
// can be ended only once, even if it fails, only in the browser that began it, and only within ten
// minutes. The fault is Unavailable if the provider does not answer the request for a token. It is
// Unauthenticated if no identity is proven, even if only the provider's keys could not be fetched.
func (p *Provider) FinishLogin(ctx context.Context, r Return) (who Identity, page string, err error) {
	l, ok := p.pending.takeLogin(r.State, r.Browser)
	if !ok {
		return Identity{}, "", errUnproven("the login that the browser came back from", errors.New("there is none, or it is another browser's"))
	}
	who, err = p.identifyVisitor(ctx, r, l)
	return who, l.page, err
}

// identifyVisitor asks the provider for the identity of the person who came back from it.
func (p *Provider) identifyVisitor(ctx context.Context, r Return, l login) (Identity, error) {
	switch {
	case r.Refusal != "":
		return Identity{}, errUnproven("the provider", fmt.Errorf("it refused with %.100q", r.Refusal))
	case r.Issuer != "" && r.Issuer != p.Issuer:
		return Identity{}, errUnproven("the issuer that sent the browser", errNot)
	case r.Code == "" || len(r.Code) > maxCode:
		return Identity{}, errUnproven("the code", errors.New("it is missing, or too long"))
	}
	known, err := p.learnProvider(ctx)
	if err != nil {
		return Identity{}, err
	}
	answer, err := p.asClient(known).Exchange(p.withClient(ctx), r.Code, oauth2.VerifierOption(l.verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return Identity{}, errUnproven("the code", errors.New("the provider refused it: "+refused.ErrorCode))
	case err != nil:
		return Identity{}, p.faultOf(err)
	}
	raw, _ := answer.Extra("id_token").(string)
	return p.verifyToken(ctx, known, raw, l.nonce)
}

// verifyToken returns the identity in an ID token. The token must be signed by the provider, for
// this client and this login.
func (p *Provider) verifyToken(ctx context.Context, known *oidc.Provider, raw, nonce string) (Identity, error) {
	token, err := known.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.Now}).Verify(p.withClient(ctx), raw)
	if err != nil {
		return Identity{}, errUnproven("the token", err)
	}
	var claims struct {
		For   any    `json:"aud"` // the client, or a list with it
		Party string `json:"azp"` // the client that the token was made for, if aud names several
	}
	if err := token.Claims(&claims); err != nil {
		return Identity{}, errUnproven("the token", err)
	}
	several, _ := claims.For.([]any)
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return Identity{}, errUnproven("the nonce of the token", errNot)
	case claims.Party != "" && claims.Party != p.ClientID || claims.Party == "" && len(several) > 1:
		return Identity{}, errUnproven("the party that the token was made for", errNot)
	case token.Subject == "" || len(token.Subject) > MaxSubject:
		return Identity{}, errUnproven("the subject of the token", errors.New("it is missing, or too long"))
	}
	return Identity{token.Issuer, token.Subject}, nil
}

// learnProvider returns the provider's description of itself. Only one request at a time fetches
// it. After a failure the description is not fetched again for retryAfter, so that the other
// requests need not wait for the same failure.
func (p *Provider) learnProvider(ctx context.Context) (*oidc.Provider, error) {
	select {
	case p.asking <- struct{}{}:
	case <-ctx.Done():
		return nil, p.faultOf(ctx.Err())
	}
	defer func() { <-p.asking }()
	if p.known == nil && p.Now().Before(p.again) {
		return nil, p.faultOf(p.failure)
	}
	if p.known == nil {
		p.known, p.failure = oidc.NewProvider(p.withClient(context.WithoutCancel(ctx)), p.Issuer) // a browser that disconnects does not stop the fetch
		p.again = p.Now().Add(retryAfter)
	}
	if p.failure != nil {
		return nil, p.faultOf(p.failure)
	}
	return p.known, nil
}

func (p *Provider) faultOf(err error) error {
	return fault.Wrap(fault.Unavailable, "the OpenID provider does not answer as it should", err).WithCode("oidc_unreachable").
		WithHint("sign in by password meanwhile; the log says what the provider answered").After(retryAfter)
}

// retryAfter is the least time from a failed fetch of the provider's description to the next
// fetch. After any failure of the provider, clients are told to wait this long, too.
const retryAfter = 10 * time.Second

// withClient makes the libraries use p.Client.
func (p *Provider) withClient(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.Client)
}

func (p *Provider) asClient(known *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: known.Endpoint(), RedirectURL: p.Callback, Scopes: []string{oidc.ScopeOpenID}}
}
