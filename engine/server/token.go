package server

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	tokenPrefix = "lw_"
	tokenSecret = 43 // characters: 256 bits
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// MintToken returns a new API token of u, such as lw_alice_…, and the digest to store. The token itself is shown once
// and stored nowhere.
func MintToken(u vocab.Username) (secret string, digest [32]byte) {
	b := make([]byte, 0, tokenSecret)
	for len(b) < tokenSecret {
		var random [64]byte
		_, _ = rand.Read(random[:]) // it never fails (crypto/rand)
		for _, r := range random {
			if r < 4*62 && len(b) < tokenSecret { // the rest would make some characters likelier than others
				b = append(b, base62[r%62])
			}
		}
	}
	secret = tokenPrefix + u.String() + "_" + string(b)
	return secret, sha256.Sum256([]byte(secret))
}

// ParseToken returns whose token this claims to be, and the digest to look it up by. The fault is Unauthenticated, in
// the same words as for a token that is not known.
func ParseToken(s string) (u vocab.Username, digest [32]byte, err error) {
	bad := fault.New(fault.Unauthenticated, "the token is not valid").WithCode("invalid_token")
	name, prefixed := strings.CutPrefix(s, tokenPrefix)
	end := strings.LastIndexByte(name, '_') // the name may hold one, the secret does not
	if !prefixed || end < 0 || len(name)-end-1 != tokenSecret || strings.Trim(name[end+1:], base62) != "" {
		return u, digest, bad
	}
	if u, err = vocab.ParseUsername(name[:end]); err != nil {
		return vocab.Username{}, digest, bad
	}
	return u, sha256.Sum256([]byte(s)), nil
}
