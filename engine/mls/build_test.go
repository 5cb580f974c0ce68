package mls

import (
	"encoding/binary"
	"slices"
)

// vector joins parts behind the length of them all.
func vector(parts ...[]byte) []byte { return appendVector(nil, slices.Concat(parts...)) }

// numbers writes a number of each size as the presentation language does: size bytes of value, by
// turns.
func uint16s(values ...uint16) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	return b
}

func uint32s(values ...uint32) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func uint64s(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// groupContext writes a GroupContext without extensions.
func groupContext(suite CipherSuite, id []byte, epoch uint64, treeHash, transcript []byte) []byte {
	return slices.Concat(uint16s(mls10, uint16(suite)), vector(id), uint64s(epoch), vector(treeHash), vector(transcript), vector())
}
