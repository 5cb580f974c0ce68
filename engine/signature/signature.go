// Package signature signs and verifies HTTP requests, in two dialects: RFC 9421 and draft-cavage-12; pure functions, no
// network, no storage.
//
// Verifying has two halves, because the key has to be found between them. Parse refuses everything that the request
// alone can get wrong and returns claims; the caller decides whose key a claim names, and Claim.Verify does the
// mathematics. Every refusal is fault.Unauthenticated, with a code that names the check that failed.
package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	// window is how far a signature's time may be from ours, either way: what most peers allow each other.
	window = time.Hour
	// maxHeader bounds the fields that carry and describe signatures, in bytes, all together.
	maxHeader = 8 << 10
	// maxKeyID is the longest key id taken, in bytes.
	maxKeyID = 1024
)

// Dialect is a way to write a signature into a request.
type Dialect uint8

// The dialects.
const (
	RFC9421 Dialect = iota + 1 // HTTP Message Signatures
	Cavage                     // draft-cavage-http-signatures-12
)

// String returns the name that ParseDialect reads.
func (d Dialect) String() string {
	switch d {
	case RFC9421:
		return "rfc9421"
	case Cavage:
		return "cavage"
	}
	return "unknown"
}

// ParseDialect returns the dialect that is called s in settings and in storage.
func ParseDialect(s string) (Dialect, error) {
	switch s {
	case "rfc9421":
		return RFC9421, nil
	case "cavage":
		return Cavage, nil
	}
	return 0, fault.New(fault.Invalid, "a signature dialect is rfc9421 or cavage")
}

// Key is a private key with the id under which peers find its public half.
type Key struct {
	ID      string
	Private crypto.Signer // *rsa.PrivateKey or ed25519.PrivateKey
}

// LogValue keeps the key out of logs.
func (Key) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// String keeps the key out of messages.
func (Key) String() string { return "REDACTED" }

// Sign adds a signature in dialect d to r, whose host, method and URL are as they will be sent; body is empty for a GET.
// It sets Date and the digest of a body, and replaces a signature that is there: a second knock signs again.
func Sign(r *http.Request, body []byte, k Key, d Dialect, now time.Time) error {
	if err := checkKeyID(k.ID); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	algorithm, err := algorithmOf(k.Private)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	m, err := outgoing(r)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	if r.Header == nil {
		r.Header = http.Header{}
		m.header = r.Header
	}
	for _, name := range []string{"Signature-Input", "Signature", "Content-Digest", "Digest"} {
		r.Header.Del(name)
	}
	r.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	switch d {
	case RFC9421:
		err = signRFC9421(m, body, k, algorithm, now)
	case Cavage:
		err = signCavage(m, body, k, algorithm)
	default:
		err = errors.New("unknown dialect")
	}
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	return nil
}

// Options is what Parse must know besides the request.
type Options struct {
	Origin string    // our public origin, such as "https://example.org": forwarded headers never have a say in it
	Now    time.Time // what the times of signatures are compared with
}

// Claim is one signature that a request carries, parsed and found worth verifying: nothing in it is trusted yet.
type Claim struct {
	Dialect Dialect
	KeyID   string // an absolute http or https URL

	algorithm string   // as named in the request; empty when it left that to the key
	bases     []string // the strings of which the signature must cover one
	signature []byte
}

// Parse returns the signatures of r worth verifying, at least one: those of RFC 9421 (at most three) if there is a
// Signature-Input field, else the one of draft-cavage. Never both: whoever can break one must not get another try.
// The digest of body is checked here too, so a claim that verifies vouches for body.
func Parse(r *http.Request, body []byte, o Options) ([]Claim, error) {
	m, err := incoming(r, o.Origin)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, name := range []string{"Signature-Input", "Signature", "Content-Digest", "Digest", "Date"} {
		for _, line := range r.Header[name] {
			size += len(line)
		}
	}
	if size > maxHeader {
		return nil, refuse("header_too_large", "the signature headers are too large")
	}
	if len(r.Header["Signature-Input"]) > 0 {
		return parseRFC9421(m, body, o.Now)
	}
	c, err := parseCavage(m, body, o.Now)
	if err != nil {
		return nil, err
	}
	return []Claim{c}, nil
}

// Verify checks the claim with the public half of the key that KeyID names: an *rsa.PublicKey or ed25519.PublicKey.
// The type of the key decides how; an algorithm named in the request can only disagree with it.
func (c Claim) Verify(key crypto.PublicKey) error {
	family, algorithms := "", []string(nil)
	switch k := key.(type) {
	case *rsa.PublicKey:
		if err := checkRSA(k); err != nil {
			return refuse("weak_key", "the key is not an RSA key of 2048 to 8192 bits with a safe exponent")
		}
		family, algorithms = "rsa", []string{rsaSHA256}
		if c.Dialect == Cavage {
			algorithms = append(algorithms, rsaSHA512)
		}
	case ed25519.PublicKey:
		if err := checkEd25519(k); err != nil {
			return refuse("weak_key", "the key is not a safe Ed25519 key")
		}
		family, algorithms = edwards, []string{edwards}
	default:
		return refuse("unknown_key_type", "the key is neither an RSA nor an Ed25519 key")
	}
	if c.algorithm != "" && c.algorithm != "hs2019" {
		if !strings.HasPrefix(c.algorithm, family) {
			return refuse("algorithm_mismatch", "the algorithm of the signature is not one of its key")
		}
		if c.Dialect == RFC9421 {
			algorithms = []string{c.algorithm}
		}
	}
	for _, base := range c.bases {
		for _, a := range algorithms {
			if verify(a, key, base, c.signature) {
				return nil
			}
		}
	}
	return refuse("bad_signature", "the signature does not verify with its key")
}

// checkKeyID refuses ids that are no absolute http or https URL, or that two readers could read in two ways.
func checkKeyID(s string) error {
	bad := func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`"<>\`, c) }
	if s == "" || len(s) > maxKeyID || !utf8.ValidString(s) || strings.ContainsFunc(s, bad) {
		return refuse("bad_key_id", "the key id is not a URL of at most 1024 bytes")
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" {
		return refuse("bad_key_id", "the key id is not an absolute https URL")
	}
	if u.User != nil || u.Hostname() == "" || strings.Contains(u.Hostname(), "%") {
		return refuse("bad_key_id", "the key id names no plain host")
	}
	return nil
}

// checkWindow refuses a time too far from now.
func checkWindow(t, now time.Time) error {
	if d := now.Sub(t); d > window || d < -window {
		return refuse("outside_window", "the time of the signature is more than an hour from ours")
	}
	return nil
}

// checkExpires refuses a signature that is over at now, or was over before it was made; created is nil when unknown.
func checkExpires(expires int64, created *int64, now time.Time) error {
	if created != nil && expires < *created {
		return refuse("expires_before_created", "the signature expires before it was created")
	}
	if now.Unix() > expires {
		return refuse("expired", "the signature has expired")
	}
	return nil
}

// needsDigest tells whether the signature must cover a digest: a POST always, as it has effects, and every body.
func needsDigest(method string, body []byte) bool {
	return method == http.MethodPost || len(body) > 0
}

func refuse(code, format string, args ...any) error {
	return fault.New(fault.Unauthenticated, fmt.Sprintf(format, args...)).WithCode(code)
}

// clip shortens what a peer wrote, so that it may be quoted in a refusal.
func clip(s string) string { return s[:min(len(s), 64)] }
