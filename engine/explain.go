package engine

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
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Explain is a request that was sent to an engine, and how it is to be looked at.
type Explain struct {
	Request *http.Request
	Body    []byte
	Origin  string    // where it was sent; empty: public_url
	At      time.Time // when it came; zero: when it says that it was made
	Key     []byte    // of the signer: RSA as PEM, a Multikey, or the actor's document; nil: what its server shows
	Offline bool      // nobody is asked for the key: it must be remembered
}

// Explanation says of each check that a request goes through what came of it.
type Explanation struct {
	Verified   bool                 `json:"verified"`
	Code       string               `json:"code,omitempty"` // of the first check that failed, as a peer is told
	Hint       string               `json:"hint,omitempty"` // what to do about it
	Method     string               `json:"method"`
	URL        string               `json:"url"` // as it must be signed here
	Host       string               `json:"host"`
	At         time.Time            `json:"at"`
	Actor      vocab.ID             `json:"actor,omitempty"` // the actor in the body
	BodyBytes  int                  `json:"body_bytes"`
	Checks     []ExplainedCheck     `json:"checks"` // of the request as a whole
	Signatures []ExplainedSignature `json:"signatures"`
	Ignored    *Ignored             `json:"ignored,omitempty"` // the activity was taken, and kept for nobody

	failure error
}

// ExplainedSignature is one signature of the request.
type ExplainedSignature struct {
	Dialect   string           `json:"dialect"`
	Label     string           `json:"label,omitempty"`
	KeyID     string           `json:"key_id"`
	Algorithm string           `json:"algorithm,omitempty"`
	Covered   []string         `json:"covered"`
	Created   *time.Time       `json:"created,omitempty"`
	Expires   *time.Time       `json:"expires,omitempty"`
	Owner     vocab.ID         `json:"owner,omitempty"` // whose key it is
	Checks    []ExplainedCheck `json:"checks"`
	Base      []string         `json:"base"` // the lines that must have been signed
}

// ExplainedCheck is what came of one check.
type ExplainedCheck struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Code   string `json:"code,omitempty"`
	Says   string `json:"says,omitempty"`
}

// What can come of a check.
const (
	CheckPassed     = "passed"
	CheckFailed     = "failed"
	CheckNotReached = "not_reached" // what it needs did not hold
)

// Err is nil when the request verifies. Its kind is Protocol when the peer got something wrong, Forbidden when the policy
// refuses it, and that of the failure when its key could not be had now.
func (x Explanation) Err() error {
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

// ExplainSignature goes through all that the engine checks of a signed request, and stops at nothing. Keys are found as
// in earnest, and what is fetched is remembered. The fault is Usage for an origin that is none.
func (e *Engine) ExplainSignature(ctx context.Context, x Explain) (Explanation, error) {
	actors, shows := e.in.Actors, objects(e.in.Actors)
	if x.Offline {
		shows = nil
		deps := actors.ResolverDeps
		deps.Fetch = nobody{}
		actors = actor.NewResolver(deps)
	}
	out, err := x.explain(ctx, e.in.Config, nil, shows, func(origin string) *actor.Verifier { return actor.NewVerifier(actors, e.in.Gate, origin, e.in.Now) })
	if err == nil {
		out.Ignored, err = e.ignoredIn(ctx, x.Body)
	}
	return out, err
}

// ExplainSignature is that of an engine for a request with its key at hand: it needs no databases. The fault is Invalid
// for a key that cannot be read.
func ExplainSignature(ctx context.Context, c instance.Config, x Explain, log *slog.Logger) (Explanation, error) {
	gate, err := instance.NewGate(c, registry.New(c.DataDir, c.UsersDir, log), log)
	if err != nil {
		return Explanation{}, err
	}
	owner, key, err := readKey(x.Key)
	if err != nil {
		return Explanation{}, err
	}
	return x.explain(ctx, c, key, nil, func(origin string) *actor.Verifier { return actor.VerifierOf(owner, gate, origin) })
}

// readKey reads the actor whose key is given, or the key alone.
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

// nobody is who is asked when nobody is to be asked.
type nobody struct{}

func (nobody) Get(context.Context, transport.Request) (*transport.Response, error) {
	return nil, fault.New(fault.Unavailable, "the key is not remembered, and nobody is to be asked").WithCode("offline")
}

func (x Explain) explain(ctx context.Context, c instance.Config, key crypto.PublicKey, shows objects, verifier func(origin string) *actor.Verifier) (Explanation, error) {
	if x.Origin == "" {
		x.Origin = c.PublicURL
	}
	if vocab.ID(x.Origin).Origin() != x.Origin {
		return Explanation{}, fault.New(fault.Usage, fmt.Sprintf("%.100q is not an origin such as https://example.org", x.Origin))
	}
	seen, err := x.examine(x.Request, x.Origin)
	if err != nil {
		return Explanation{}, err
	}
	if x.At.IsZero() {
		x.At = made(seen)
		seen, _ = x.examine(x.Request, x.Origin) // it could be examined before
	}
	v := verifier(x.Origin)
	t := telling{Explain: x, seen: seen, out: Explanation{Method: x.Request.Method, URL: x.Origin + x.Request.RequestURI, Host: x.Request.Host,
		At: x.At.UTC(), BodyBytes: len(x.Body), Signatures: []ExplainedSignature{}}}
	var activity *vocab.Activity
	if x.Request.Method == http.MethodPost || len(x.Body) > 0 {
		activity, err = vocab.ParseActivity(x.Body)
		if err == nil {
			t.out.Actor = activity.Actor
		}
		t.sender = append([]signature.Finding{{Check: "body", Reached: true, Err: err}}, v.ExplainSender(t.out.Actor)...)
	}
	for _, s := range seen.Signatures {
		t.signatures = append(t.signatures, v.Explain(ctx, s, t.out.Actor, key))
	}
	t.tell()
	t.vouch(ctx, v, activity, shows)
	return t.out, nil
}

// made returns when a request was made, by the newest of its signatures; now when none of them says.
func made(seen signature.Examination) time.Time {
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

// examine reads a request as if it had come to origin.
func (x Explain) examine(r *http.Request, origin string) (signature.Examination, error) {
	return signature.Examine(r, x.Body, signature.Options{Origin: origin, Now: x.At})
}
