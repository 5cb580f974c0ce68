package mls

// LeafSource says what a leaf was made for (§7.2).
type LeafSource uint8

// The sources of leaves.
const (
	LeafOfKeyPackage LeafSource = iota + 1
	LeafOfUpdate
	LeafOfCommit
)

// LeafNode is one device: its keys, and who it speaks for (§7.2).
type LeafNode struct {
	EncryptionKey []byte
	SignatureKey  []byte
	Identity      []byte // of a basic credential; nil with X.509
	Source        LeafSource
	NotBefore     uint64 // in Unix seconds; of a key package's leaf
	NotAfter      uint64

	signed    []byte // the LeafNodeTBS, but for the place in the group that an update or commit adds
	signature []byte
}

func (r *reader) readLeafNode() LeafNode {
	start := r.rest
	l := LeafNode{EncryptionKey: r.readVector(), SignatureKey: r.readVector()}
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
	l.Source = LeafSource(r.readUint8())
	switch l.Source {
	case LeafOfKeyPackage:
		l.NotBefore, l.NotAfter = r.readUint64(), r.readUint64()
	case LeafOfUpdate:
	case LeafOfCommit:
		r.readVector() // parent_hash
	default:
		r.fail(ErrLeafSource)
	}
}

// checkLifetime refuses a leaf that is not valid at now, in Unix seconds, or whose lifetime is
// over longest seconds (§7.2).
func (l *LeafNode) checkLifetime(now, longest uint64) error {
	if now < l.NotBefore || now > l.NotAfter || l.NotAfter-l.NotBefore > longest {
		return ErrLifetime
	}
	return nil
}
