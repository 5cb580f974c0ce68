package db

import (
	"bytes"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Owned is an id with the actor who uses it: an activity's with its actor, an object's with its
// author. Two actors of one server may use the same id, and neither takes it from the other.
type Owned struct{ ID, Actor vocab.ID }

// halfDigest is how many bytes of a digest stand for one of the two.
const halfDigest = 16

// key is what stands for both where only equality counts. Rows from before have the whole digest
// of the id in its place, and are everybody's.
func (o Owned) key() []byte {
	return append(digest(o.ID)[:halfDigest:halfDigest], digest(o.Actor)[:halfDigest]...)
}

func keys(all []Owned) [][]byte {
	out := make([][]byte, len(all))
	for n, o := range all {
		out[n] = o.key()
	}
	return out
}

// everybodys returns the keys that rows from before have.
func everybodys(all []Owned) [][]byte {
	out := make([][]byte, len(all))
	for n, o := range all {
		out[n] = digest(o.ID)
	}
	return out
}

// keysOf returns the bounds of all keys of an id, whoever uses it, those from before too.
func keysOf(id vocab.ID) (from, to []byte) {
	h := digest(id)[:halfDigest:halfDigest]
	return append(h, make([]byte, halfDigest)...), append(h, bytes.Repeat([]byte{0xff}, halfDigest)...)
}
