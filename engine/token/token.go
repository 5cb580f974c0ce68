// Package token makes and checks API tokens and the secrets of sessions, and hashes and checks
// passwords. An API token has the form lw_<username>_<43 characters of base62>, and the secret
// of a session has the form lws_<username>_<43 characters of base62>. Only the digests of both
// are stored, and only the hashes of passwords.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Kind is the kind of a secret.
type Kind string

// The kinds, each with the prefix of its secrets.
const (
	API     Kind = "lw_"
	Session Kind = "lws_"
)

const (
	secretLength = 43 // characters: 256 bits
	base62       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// New returns a new secret of u, such as lw_alice_…, and its digest. The caller stores the digest
// and shows the secret once; the secret itself is never stored.
func New(kind Kind, u vocab.Username) (secret string, digest [32]byte) {
	b := make([]byte, 0, secretLength)
	for len(b) < secretLength {
		var random [64]byte
		_, _ = rand.Read(random[:]) // crypto/rand never fails
		for _, r := range random {
			if r < 4*62 && len(b) < secretLength { // higher bytes would make some characters likelier than others
				b = append(b, base62[r%62])
			}
		}
	}
	secret = string(kind) + u.String() + "_" + string(b)
	return secret, sha256.Sum256([]byte(secret))
}

// Parse returns the kind of a secret, the user that it names, and the digest by which it is
// looked up. If s is no secret, the fault is Unauthenticated, in the same words as for an
// unknown secret.
func Parse(s string) (kind Kind, u vocab.Username, digest [32]byte, err error) {
	bad := fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	kind = API
	name, prefixed := strings.CutPrefix(s, string(API))
	if !prefixed {
		kind = Session
		name, prefixed = strings.CutPrefix(s, string(Session))
	}
	end := strings.LastIndexByte(name, '_') // a username may contain an underscore, but the 43 characters may not
	if !prefixed || end < 0 || len(name)-end-1 != secretLength || strings.Trim(name[end+1:], base62) != "" {
		return "", u, digest, bad
	}
	if u, err = vocab.ParseUsername(name[:end]); err != nil {
		return "", vocab.Username{}, digest, bad
	}
	return kind, u, sha256.Sum256([]byte(s)), nil
}
