package schema

import (
	"crypto/sha256"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Digest returns the SHA-256 of an id's canonical form. The hash is stored in place of the id
// where only equality counts, because ids can be long.
func Digest(id vocab.ID) []byte {
	d := sha256.Sum256([]byte(id.Canonical()))
	return d[:]
}

// HalfDigest is the number of bytes that an OwnedKey takes from the digest of the id. It takes
// the same number from the digest of the actor.
const HalfDigest = 16

// OwnedKey returns a key for an id together with the actor that uses it. With such keys two actors
// of one server may use the same id without a conflict. Older rows have the whole Digest of the id
// instead.
func OwnedKey(id, actor vocab.ID) []byte {
	return append(Digest(id)[:HalfDigest:HalfDigest], Digest(actor)[:HalfDigest]...)
}
