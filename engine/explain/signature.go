// Package explain explains what the engine did: why it refuses a signature, and what happened
// to an activity.
package explain

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// SignedRequest is a request that was sent to the engine, and how to check it.
type SignedRequest struct {
	Request *http.Request
	Body    []byte
	Origin  string    // the scheme and host to which it was sent; if empty, public_url is used
	At      time.Time // when it arrived; if zero, the time that the newest signature states is used
	// Key is the signer's key as PEM or Multikey, or the signer's actor document. If it is nil,
	// the engine finds the key by its id.
	Key     []byte
	Offline bool // nothing is fetched, so the key must be stored on this server
}

// SignatureReport shows the result of every check of a request.
type SignatureReport struct {
	Verified bool `json:"verified"`
	// Code is the code of the first failed check. The sender got the same code.
	Code       string             `json:"code,omitempty"`
	Hint       string             `json:"hint,omitempty"` // how to fix that check
	Method     string             `json:"method"`
	URL        string             `json:"url"` // the URL that the signature must cover
	Host       string             `json:"host"`
	At         time.Time          `json:"at"`
	Actor      vocab.ID           `json:"actor,omitempty"` // the actor in the body
	BodyBytes  int                `json:"body_bytes"`
	Checks     []Check            `json:"checks"` // the checks of the request as a whole
	Signatures []CheckedSignature `json:"signatures"`
	Ignored    *Ignored           `json:"ignored,omitempty"` // set when the activity was accepted and stored for no user

	failure error
}

// CheckedSignature is one signature of the request, with the result of its checks.
type CheckedSignature struct {
	Dialect   string     `json:"dialect"`
	Label     string     `json:"label,omitempty"`
	KeyID     string     `json:"key_id"`
	Algorithm string     `json:"algorithm,omitempty"`
	Covered   []string   `json:"covered"`
	Created   *time.Time `json:"created,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	Owner     vocab.ID   `json:"owner,omitempty"` // the owner of the key
	Checks    []Check    `json:"checks"`
	Base      []string   `json:"base"` // the lines that must have been signed
}

// Check is the result of one check.
type Check struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Code   string `json:"code,omitempty"`
	Says   string `json:"says,omitempty"`
}

// Results of a check.
const (
	CheckPassed = "passed"
	CheckFailed = "failed"
	// CheckNotReached says that the check was not made, because an earlier check failed, or
	// because there is nothing to check.
	CheckNotReached = "not_reached"
)

// Err returns nil if the request verifies. Otherwise the fault is Protocol if the sender made a
// mistake, and Forbidden if the policy refuses the request. If the key could not be fetched, the
// fault has the kind of that failure.
func (x SignatureReport) Err() error {
	if x.Verified {
		return nil
	}
	kind := fault.KindOf(x.failure)
	switch kind {
	case fault.Unauthenticated, fault.Invalid, fault.NotFound, fault.Gone:
		kind = fault.Protocol
	}
	return fault.Wrap(kind, "the request does not verify: "+fault.Public(x.failure), x.failure).WithCode(x.Code).WithHint(x.Hint)
}

// Signature makes every check that the engine makes of a signed request, and continues after a
// failure. It finds keys as the engine does, and stores the actors that it fetches. The fault is
// Usage if x.Origin is malformed.
func Signature(ctx context.Context, in *instance.Instance, x SignedRequest) (SignatureReport, error) {
	actors, shows := in.Actors, objects(in.Actors)
	if x.Offline {
		shows = nil
		deps := actors.ResolverDeps
		deps.Fetch = offline{}
		actors = actor.NewResolver(deps)
	}
	out, err := x.explain(ctx, in.Config, nil, shows, func(origin string) *actor.Verifier {
		return actor.NewVerifier(actors, in.Gate, origin, in.Now)
	})
	if err == nil {
		out.Ignored, err = findIgnoredBody(ctx, in, x)
	}
	return out, err
}

// SignatureWithKey does the same as Signature, with the key in x.Key. It opens no database. The
// fault is Invalid if the key cannot be read.
func SignatureWithKey(ctx context.Context, c instance.Config, x SignedRequest, log *slog.Logger) (SignatureReport, error) {
	gate, err := instance.NewGate(c, registry.New(c.DataDir, c.UsersDir, log), log)
	if err != nil {
		return SignatureReport{}, err
	}
	owner, key, err := readKey(x.Key)
	if err != nil {
		return SignatureReport{}, err
	}
	return x.explain(ctx, c, key, nil, func(origin string) *actor.Verifier {
		return actor.VerifierOf(owner, gate, origin)
	})
}

// readKey reads an actor's document with its keys, or a single key.
func readKey(text []byte) (*vocab.Actor, crypto.PublicKey, error) {
	text = bytes.TrimSpace(text)
	switch {
	case bytes.HasPrefix(text, []byte("{")):
		a, err := vocab.ParseActor(text)
		return a, nil, err
	case bytes.HasPrefix(text, []byte("z")):
		k, err := signature.ParseMultikey(string(text))
		return nil, k, err
	}
	k, err := signature.ParsePublicKeyPEM(string(text))
	return nil, k, err
}

// offline refuses every fetch.
type offline struct{}

func (offline) Get(context.Context, transport.Request) (*transport.Response, error) {
	return nil, fault.New(fault.Unavailable, "the key is not remembered, and nobody is to be asked").WithCode("offline")
}

// explain makes the checks with the verifier that the function verifier returns for the request's
// origin. If key is not nil, it is used in place of the key that the verifier finds. If the
// parameter shows is nil, explain does not ask the actor's server for the activity.
func (x SignedRequest) explain(
	ctx context.Context, c instance.Config, key crypto.PublicKey, shows objects, verifier func(origin string) *actor.Verifier,
) (SignatureReport, error) {
	if x.Origin == "" {
		x.Origin = c.PublicURL
	}
	if vocab.ID(x.Origin).Origin() != x.Origin {
		return SignatureReport{}, fault.New(fault.Usage, fmt.Sprintf("%.100q is not an origin such as https://example.org", x.Origin))
	}
	seen, err := x.examine(x.Request, x.Origin)
	if err != nil {
		return SignatureReport{}, err
	}
	if x.At.IsZero() {
		x.At = madeAt(seen)
		seen, _ = x.examine(x.Request, x.Origin) // the same call succeeded above
	}
	v := verifier(x.Origin)
	t := explainer{SignedRequest: x, seen: seen, out: SignatureReport{Method: x.Request.Method, URL: x.Origin + x.Request.RequestURI, Host: x.Request.Host,
		At: x.At.UTC(), BodyBytes: len(x.Body), Signatures: []CheckedSignature{}}}
	var activity *vocab.Activity
	if x.Request.Method == http.MethodPost || len(x.Body) > 0 {
		activity, err = handler.ParseRequest(x.Body, x.Request.Header)
		if err == nil {
			t.out.Actor = activity.Actor
		}
		t.sender = append([]signature.Finding{{Check: "body", Reached: true, Err: err}}, v.ExplainSender(t.out.Actor)...)
	}
	for _, s := range seen.Signatures {
		t.signatures = append(t.signatures, v.Explain(ctx, s, t.out.Actor, key))
	}
	t.fillReport()
	t.checkPassedOn(ctx, v, activity, shows)
	return t.out, nil
}

// madeAt returns the time of the newest signature of a request. If no signature has a time, it
// returns now.
func madeAt(seen signature.Examination) time.Time {
	var at time.Time
	for _, s := range seen.Signatures {
		if s.Created.After(at) {
			at = s.Created
		}
	}
	if at.IsZero() {
		return time.Now()
	}
	return at
}

// examine reads a request as if it had been sent to origin.
func (x SignedRequest) examine(r *http.Request, origin string) (signature.Examination, error) {
	return signature.Examine(r, x.Body, signature.Options{Origin: origin, Now: x.At})
}
