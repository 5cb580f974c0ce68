package mls

import (
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"testing"
)

// All tests of this package read messages at noon. The actor is always alice.
const (
	noon  = 1_800_000_000
	week  = 7 * 24 * 3600
	alice = "https://a.example/users/alice"
)

// vector returns the parts, with their total length before them.
func vector(parts ...[]byte) []byte { return appendVector(nil, slices.Concat(parts...)) }

// join returns the fields one after another. Numbers are in big-endian order.
func join(fields ...any) (b []byte) {
	for _, f := range fields {
		switch f := f.(type) {
		case []byte:
			b = append(b, f...)
		case uint8:
			b = append(b, f)
		case uint16:
			b = binary.BigEndian.AppendUint16(b, f)
		case uint32:
			b = binary.BigEndian.AppendUint32(b, f)
		case uint64:
			b = binary.BigEndian.AppendUint64(b, f)
		}
	}
	return b
}

// message returns an MLSMessage.
func message(format WireFormat, fields ...any) []byte {
	return join(uint16(mls10), uint16(format), join(fields...))
}

// groupContext returns a GroupContext without extensions.
func groupContext(suite CipherSuite, id []byte, epoch uint64, treeHash, transcript []byte) []byte {
	return join(uint16(mls10), uint16(suite), vector(id), epoch, vector(treeHash), vector(transcript), vector())
}

// device is a client that makes messages of one cipher suite. It has the same keys in every run.
type device struct {
	suite            CipherSuite
	signer           crypto.Signer
	key              []byte // the public signature key
	initKey, leafKey []byte
}

func newDevice(t testing.TB, suite CipherSuite, seed byte) *device {
	t.Helper()
	d := &device{suite: suite}
	curve := ecdh.X25519()
	secret := func(n byte) []byte { digest := sha256.Sum256([]byte{seed, n}); return digest[:] }
	if suite == 2 {
		curve = ecdh.P256()
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), secret(0))
		if err != nil {
			t.Fatal(err)
		}
		d.signer = private
		if d.key, err = private.PublicKey.Bytes(); err != nil {
			t.Fatal(err)
		}
	} else {
		private := ed25519.NewKeyFromSeed(secret(0))
		d.signer, d.key = private, private.Public().(ed25519.PublicKey)
	}
	for n, key := range []*[]byte{&d.initKey, &d.leafKey} {
		private, err := curve.NewPrivateKey(secret(byte(n + 1)))
		if err != nil {
			t.Fatal(err)
		}
		*key = private.PublicKey().Bytes()
	}
	return d
}

// sign does SignWithLabel (RFC 9420 §5.1.2).
func (d *device) sign(t testing.TB, label string, content ...[]byte) []byte {
	t.Helper()
	signed, options := join(vector([]byte("MLS 1.0 "+label)), vector(content...)), crypto.Hash(0)
	if d.suite == 2 {
		digest := sha256.Sum256(signed)
		signed, options = digest[:], crypto.SHA256
	}
	signature, err := d.signer.Sign(rand.Reader, signed, options)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}

// draft holds the fields of a key package that is not yet signed.
type draft struct {
	suite            CipherSuite
	initKey, leafKey []byte
	credential       []byte
	source           []byte
}

func (d *device) draft() draft {
	return draft{
		suite: d.suite, initKey: d.initKey, leafKey: d.leafKey, credential: basic(alice),
		source: join(uint8(leafOfKeyPackage), uint64(noon-3600), uint64(noon+week)),
	}
}

// basic returns a basic credential.
func basic(identity string) []byte { return join(uint16(credentialBasic), vector([]byte(identity))) }

// leaf returns a signed leaf with the fields of the draft.
func (d *device) leaf(t testing.TB, p draft) []byte {
	t.Helper()
	capabilities := join(vector(join(uint16(mls10))), vector(join(uint16(d.suite))), vector(), vector(), vector(join(uint16(credentialBasic))))
	signed := join(vector(p.leafKey), vector(d.key), p.credential, capabilities, p.source, vector(join(uint16(0x0a0a), vector([]byte("grease")))))
	return join(signed, vector(d.sign(t, "LeafNodeTBS", signed)))
}

// keyPackage returns the draft's key package, without an MLSMessage around it.
func (d *device) keyPackage(t testing.TB, p draft) []byte {
	t.Helper()
	return d.keyPackageOf(t, p, d.leaf(t, p))
}

// keyPackageOf returns the draft's key package with the given leaf, without an MLSMessage around
// it.
func (d *device) keyPackageOf(t testing.TB, p draft, leaf []byte) []byte {
	t.Helper()
	signed := join(uint16(mls10), uint16(p.suite), vector(p.initKey), leaf, vector())
	return join(signed, vector(d.sign(t, "KeyPackageTBS", signed)))
}

// groupID is the id of the group in these tests.
var groupID = []byte("urn:uuid:0d5e3f0c-6f0a-4d8e-9d51-2f6a4a0f3a11")

// context returns the GroupContext of the group groupID at epoch 7.
func (d *device) context() []byte {
	return groupContext(d.suite, groupID, 7, make([]byte, 32), make([]byte, 32))
}

// publicMessage returns a signed PublicMessage with the content. The parameter sender is the
// encoded sender, and t2 is the type of the content.
func (d *device) publicMessage(t testing.TB, sender []byte, t2 ContentType, content []byte) []byte {
	t.Helper()
	signed := message(FormatPublicMessage, vector(groupID), uint64(7), sender, vector([]byte("aad")), uint8(t2), content)
	m := join(signed, vector(d.sign(t, "FramedContentTBS", signed, d.context())))
	if t2 == ContentCommit {
		m = join(m, vector(make([]byte, 32))) // the confirmation_tag
	}
	if SenderType(sender[0]) == SenderMember {
		m = join(m, vector(make([]byte, 32))) // the membership_tag
	}
	return m
}

// memberAt returns the encoded sender that stands for the member at a leaf.
func memberAt(leaf uint32) []byte { return join(uint8(SenderMember), leaf) }

// commit returns a commit of proposals. If path is nil, the commit has no path.
func commit(path []byte, proposals ...[]byte) []byte {
	presence := []byte{0}
	if path != nil {
		presence = []byte{1}
	}
	return join(vector(proposals...), presence, path)
}

// proposal returns a proposal by value, in the form in which a commit contains it.
func proposal(kind ProposalType, fields ...any) []byte {
	return join(uint8(byValue), uint16(kind), join(fields...))
}

// path returns an UpdatePath with the given number of nodes. Each node has one ciphertext.
func (d *device) path(t testing.TB, nodes int) []byte {
	t.Helper()
	node := join(vector(d.leafKey), vector(vector(d.leafKey), vector(make([]byte, 48))))
	return join(d.commitLeaf(t), vector(slices.Repeat(node, nodes)))
}

// commitLeaf returns the leaf that a commit's path contains.
func (d *device) commitLeaf(t testing.TB) []byte {
	t.Helper()
	p := d.draft()
	p.source = join(uint8(leafOfCommit), vector(make([]byte, 32)))
	return d.leaf(t, p)
}

// tree returns the data of the extension ratchet_tree for two members. Between them is a blank
// leaf.
func (d *device) tree(t testing.TB) []byte {
	t.Helper()
	leaf := join(uint8(1), uint8(nodeLeaf), d.leaf(t, d.draft()))
	parent := join(uint8(1), uint8(nodeParent), vector(d.leafKey), vector(), vector(join(uint32(2))))
	return vector(leaf, parent, []byte{0}, []byte{0}, leaf)
}

// groupInfo returns a GroupInfo with extensions. The parameter signer is the leaf index of the
// member who signs.
func (d *device) groupInfo(t testing.TB, signer uint32, extensions ...[]byte) []byte {
	t.Helper()
	signed := join(d.context(), vector(extensions...), vector(make([]byte, 32)), signer)
	return message(FormatGroupInfo, signed, vector(d.sign(t, "GroupInfoTBS", signed)))
}

func extension(kind uint16, data []byte) []byte { return join(kind, vector(data)) }

// welcome returns a Welcome for the given number of key packages. Their references are hashes of
// their numbers.
func welcome(packages int) []byte {
	var secrets []byte
	for i := range packages {
		ref := sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		secrets = join(secrets, vector(ref[:]), vector(make([]byte, 32)), vector(make([]byte, 100)))
	}
	return message(FormatWelcome, uint16(1), vector(secrets), vector(make([]byte, 500)))
}

// privateMessage returns a PrivateMessage whose ciphertext is zeros.
func privateMessage(t ContentType) []byte {
	return message(FormatPrivateMessage, vector(groupID), uint64(7), uint8(t), vector([]byte("aad")), vector(make([]byte, 28)), vector(make([]byte, 300)))
}

// examples returns one message of each kind. The keys are the names of the kinds.
func examples(t testing.TB) map[string][]byte {
	t.Helper()
	d := newDevice(t, 1, 1)
	added := d.keyPackage(t, d.draft())
	return map[string][]byte{
		"welcome": welcome(3), "private": privateMessage(ContentApplication),
		"key package": message(FormatKeyPackage, added),
		"group info":  d.groupInfo(t, 0, extension(extensionRatchetTree, d.tree(t)), extension(extensionExternalPub, vector(d.initKey))),
		"application": d.publicMessage(t, memberAt(0), ContentApplication, vector([]byte("hi"))),
		"proposal":    d.publicMessage(t, memberAt(2), ContentProposal, join(uint16(ProposalRemove), uint32(2))),
		"commit": d.publicMessage(t, memberAt(0), ContentCommit, commit(d.path(t, 2),
			proposal(ProposalAdd, added), proposal(ProposalRemove, uint32(2)), join(uint8(byReference), vector(make([]byte, 32))))),
		"external commit": d.publicMessage(t, join(uint8(SenderNewMemberCommit)), ContentCommit,
			commit(d.path(t, 1), proposal(ProposalExternalInit, vector(d.leafKey)))),
	}
}
