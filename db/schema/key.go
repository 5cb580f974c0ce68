package schema

import (
	"crypto/sha256"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Digest stands for an id where only equality counts: ids can be long.
func Digest(id vocab.ID) []byte {
	d := sha256.Sum256([]byte(id.Canonical()))
	return d[:]
}

// HalfDigest is how many bytes of a digest stand for each of two ids.
const HalfDigest = 16

// OwnedKey stands for an id together with the actor who uses it: two actors of one server may use
// the same id, and neither takes it from the other. Older rows have the whole digest of the id in
// its place.
func OwnedKey(id, actor vocab.ID) []byte {
	return append(Digest(id)[:HalfDigest:HalfDigest], Digest(actor)[:HalfDigest]...)
}
