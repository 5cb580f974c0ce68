// Package signature signs and verifies HTTP requests in two dialects, RFC 9421 and
// draft-cavage-12. Its functions use neither network nor storage.
//
// Verifying has two halves, because the caller must find the key between them. Parse makes all
// checks that need only the request, and returns claims. The caller finds the key that a claim
// names, and the owner of that key. Claim.Verify then checks the signature with the key. Every
// refusal is fault.Unauthenticated, with a code that names the failed check.
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
	// maxHeader is the greatest total size, in bytes, of the fields that contain and describe
	// signatures.
	maxHeader = 8 << 10
	// maxKeyID is the greatest length of a key id that is accepted, in bytes.
	maxKeyID = 1024
	// synchronization is the field by which servers compare followers (FEP-8fcf). It counts only
	// when the signature covers it.
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

// ParseDialect returns the dialect that s names. Settings and the database use these names.
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

// LogValue implements slog.LogValuer. It keeps the key out of logs.
func (Key) LogValue() slog.Value { return slog.StringValue("REDACTED") }

// String keeps the key out of messages.
func (Key) String() string { return "REDACTED" }

// Sign adds a signature in dialect d to r. The host, method and URL of r must be as they will be
// sent; body is empty for a GET. Sign sets Date, and the digest if there is a body. It replaces
// any earlier signature, so that a request can be signed again in the other dialect.
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

// Claim is one signature in a request. Until Verify has accepted the claim, nothing in it can be
// trusted.
type Claim struct {
	Dialect   Dialect
	Label     string    // the label in RFC 9421; empty in draft-cavage
	KeyID     string    // an absolute http or https URL
	Algorithm string    // as named in the request; empty when the request names none
	Covered   []string  // the names of the covered components
	Created   time.Time // the creation time in the request; in draft-cavage it is the Date if the signature covers date but not (created)
	Expires   time.Time // zero when the signature does not expire
	Bases     []string  // the signature must be over one of these; in draft-cavage there may be two, with and without the query

	signature []byte
}

// String names the claim in errors.
func (c Claim) String() string { return fmt.Sprintf("%s signature by %.200q", c.Dialect, c.KeyID) }

func (c Claim) wrapRefusal(err error) error { return fmt.Errorf("%s: %w", c, err) }

// checkKeyID refuses a key id that is not an absolute http or https URL, or that two parsers
// could read differently.
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

// isDigestNeeded reports whether the signature must cover a digest. Every POST needs a digest,
// because a POST has effects. Every other request with a body needs one, too.
func isDigestNeeded(method string, body []byte) bool {
	return method == http.MethodPost || len(body) > 0
}

func refuse(code, format string, args ...any) error {
	return fault.New(fault.Unauthenticated, fmt.Sprintf(format, args...)).WithCode(code)
}

// refuseFor is refuse, with an additional text that only the operator sees.
func refuseFor(code, public, format string, args ...any) error {
	return fault.Wrap(fault.Unauthenticated, public, fmt.Errorf(format, args...)).WithCode(code)
}

// clip shortens text from a peer, so that it can be quoted in a refusal.
func clip(s string) string { return s[:min(len(s), 64)] }
