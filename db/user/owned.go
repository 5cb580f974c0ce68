package user

import (
	"bytes"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Owned is an id with the actor who uses it: the id of an activity with its actor, or of an
// object with its author. Two actors of one server may use the same id, and neither takes it
// from the other.
type Owned struct{ ID, Actor vocab.ID }

// key returns the schema.OwnedKey of o. Old rows, from the time when actors were not stored, have
// the whole digest of the id instead. They count for every actor.
func (o Owned) key() []byte { return schema.OwnedKey(o.ID, o.Actor) }

func keys(all []Owned) [][]byte {
	out := make([][]byte, len(all))
	for n, o := range all {
		out[n] = o.key()
	}
	return out
}

// everybodys returns the keys that these ids have in old rows, which count for every actor (see
// key).
func everybodys(all []Owned) [][]byte {
	out := make([][]byte, len(all))
	for n, o := range all {
		out[n] = schema.Digest(o.ID)
	}
	return out
}

// keysOf returns the lowest and the highest possible key of an id, for any actor. The keys of
// old rows, which have no actor (see key), lie between them, too.
func keysOf(id vocab.ID) (from, to []byte) {
	h := schema.Digest(id)[:schema.HalfDigest:schema.HalfDigest]
	return append(h, make([]byte, schema.HalfDigest)...), append(h, bytes.Repeat([]byte{0xff}, schema.HalfDigest)...)
}
