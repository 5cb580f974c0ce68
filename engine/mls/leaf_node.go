package mls

import "bytes"

// leafSource says for which use a leaf was made (§7.2).
type leafSource uint8

// The sources of leaves.
const (
	leafOfKeyPackage leafSource = iota + 1
	leafOfUpdate
	leafOfCommit
)

// LeafNode is one device: its keys, and the identity of its owner (§7.2).
type LeafNode struct {
	encryptionKey []byte
	SignatureKey  []byte
	Identity      []byte // from a basic credential; nil with X.509
	source        leafSource
	NotBefore     uint64 // in Unix seconds; only in a key package's leaf
	NotAfter      uint64

	signed    []byte // the LeafNodeTBS, without the group id and leaf index
	signature []byte
}

// readLeafNode reads a leaf of any source.
func (r *reader) readLeafNode() LeafNode {
	start := r.rest
	l := LeafNode{encryptionKey: r.readVector(), SignatureKey: r.readVector()}
	l.readCredential(r)
	for range 5 { // versions, cipher_suites, extensions, proposals, credentials
		r.skipNumbers(2)
	}
	l.readSource(r)
	r.skipExtensions()
	l.signed = r.readSince(start)
	l.signature = r.readVector()
	return l
}

// readLeafOf reads a leaf, and refuses a leaf of another source.
func (r *reader) readLeafOf(source leafSource) *LeafNode {
	l := r.readLeafNode()
	if l.source != source {
		r.fail(ErrLeafSource)
	}
	return &l
}

// The types of credentials (§5.3).
const (
	credentialBasic = iota + 1
	credentialX509
)

func (l *LeafNode) readCredential(r *reader) {
	switch r.readUint16() {
	case credentialBasic:
		l.Identity = r.readVector()
	case credentialX509:
		r.readList(func(r *reader) { r.readVector() })
	default:
		r.fail(ErrCredential)
	}
}

func (l *LeafNode) readSource(r *reader) {
	l.source = leafSource(r.readUint8())
	switch l.source {
	case leafOfKeyPackage:
		l.NotBefore, l.NotAfter = r.readUint64(), r.readUint64()
	case leafOfUpdate:
	case leafOfCommit:
		r.readVector() // parent_hash
	default:
		r.fail(ErrLeafSource)
	}
}

// SharesKey reports whether two leaves have the same signature key or the same encryption key. No
// two leaves of a group may share a key (§7.3).
func (l *LeafNode) SharesKey(other *LeafNode) bool {
	return bytes.Equal(l.SignatureKey, other.SignatureKey) || bytes.Equal(l.encryptionKey, other.encryptionKey)
}

// checkLifetime refuses a leaf that is not valid at the time now, in Unix seconds, or whose
// lifetime is longer than the parameter longest, in seconds (§7.2).
func (l *LeafNode) checkLifetime(now, longest uint64) error {
	if now < l.NotBefore || now > l.NotAfter || l.NotAfter-l.NotBefore > longest {
		return ErrLifetime
	}
	return nil
}
