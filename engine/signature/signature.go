// Package signature signs and verifies HTTP requests, in two dialects: RFC 9421 and
// draft-cavage-12; pure functions, no network, no storage.
//
// Verifying has two halves, because the key has to be found between them. Parse refuses everything
// that the request alone can get wrong and returns claims; the caller decides whose key a claim
// names, and Claim.Verify does the mathematics. Every refusal is fault.Unauthenticated, with a
// code that names the check that failed.
package signature

import (
	"crypto"
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
	// window is how far a signature's time may be from ours, either way: what most peers allow
	// each other.
	window = time.Hour
	// maxHeader bounds the fields that carry and describe signatures, in bytes, all together.
	maxHeader = 8 << 10
	// maxKeyID is the longest key id taken, in bytes.
	maxKeyID = 1024
	// synchronization is the field by which servers compare followers (FEP-8fcf). It counts only
	// when it is covered.
	synchronization = "collection-synchronization"
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

// Sign adds a signature in dialect d to r, whose host, method and URL are as they will be sent;
// body is empty for a GET. It sets Date and the digest of a body, and replaces a signature that is
// there: a second knock signs again.
func Sign(r *http.Request, body []byte, k Key, d Dialect, now time.Time) error {
	if err := checkKeyID(k.ID); err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	algorithm, err := algorithmOf(k.Private)
	if err != nil {
		return fmt.Errorf("sign request: %w", err)
	}
	m, err := newOutgoing(r)
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

// Claim is one signature that a request carries. Parse has found it worth verifying; nothing in it
// is trusted yet.
type Claim struct {
	Dialect   Dialect
	Label     string    // of RFC 9421
	KeyID     string    // an absolute http or https URL
	Algorithm string    // as named in the request; empty when it left that to the key
	Covered   []string  // the names of the covered components
	Created   time.Time // what the request says; of draft-cavage the date, when that is covered instead
	Expires   time.Time // zero when the signature has no end
	Bases     []string  // the signature must be one of these: draft-cavage may leave out the query

	signature []byte
}

// String names the claim in errors.
func (c Claim) String() string { return fmt.Sprintf("%s signature by %.200q", c.Dialect, c.KeyID) }

func (c Claim) wrapRefusal(err error) error { return fmt.Errorf("%s: %w", c, err) }

// checkKeyID refuses ids that are no absolute http or https URL, or that two readers could read in
// two ways.
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
		return refuseFor("outside_window", "the time of the signature is more than an hour from ours", "it is %s, and was made %s", stamp(now), stamp(t))
	}
	return nil
}

// checkExpires refuses a signature that is over at now, or was over before it was made; created is
// nil when unknown.
func checkExpires(expires int64, created *int64, now time.Time) error {
	if created != nil && expires < *created {
		return refuse("expires_before_created", "the signature expires before it was created")
	}
	if now.Unix() > expires {
		return refuseFor("expired", "the signature has expired", "it is %s, and it ended %s", stamp(now), stamp(time.Unix(expires, 0)))
	}
	return nil
}

// isDigestNeeded reports whether the signature must cover a digest: a POST always, as it has
// effects, and every body.
func isDigestNeeded(method string, body []byte) bool {
	return method == http.MethodPost || len(body) > 0
}

func refuse(code, format string, args ...any) error {
	return fault.New(fault.Unauthenticated, fmt.Sprintf(format, args...)).WithCode(code)
}

// refuseFor is refuse with words for the operator alone.
func refuseFor(code, public, format string, args ...any) error {
	return fault.Wrap(fault.Unauthenticated, public, fmt.Errorf(format, args...)).WithCode(code)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// clip shortens what a peer wrote, so that it may be quoted in a refusal.
func clip(s string) string { return s[:min(len(s), 64)] }
