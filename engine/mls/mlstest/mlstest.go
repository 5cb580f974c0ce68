// Package mlstest makes messages of MLS groups for tests and benchmarks. The unencrypted parts
// have the form of RFC 9420. In place of the group's hashes and MACs they have zeros. The
// encrypted parts are random bytes.
package mlstest

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/mls"
)

// suite is MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519.
const suite = 1

// otherSuite is MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519. Its keys are of the same
// kinds as the keys of suite.
const otherSuite = 3

// vector returns the parts, with their total length before them (RFC 9420 §2.1.2).
func vector(parts ...[]byte) []byte {
	b := slices.Concat(parts...)
	switch n := len(b); {
	case n < 1<<6:
		return append([]byte{byte(n)}, b...)
	case n < 1<<14:
		return append([]byte{1<<6 | byte(n>>8), byte(n)}, b...)
	default:
		return append(binary.BigEndian.AppendUint32(nil, 2<<30|uint32(n)), b...)
	}
}

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
		default:
			panic("mlstest: a field of another type")
		}
	}
	return b
}

func writeMessage(format mls.WireFormat, fields ...any) []byte {
	return join(uint16(1), uint16(format), join(fields...))
}

func makeNoise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // Read never fails
	return b
}

// Device is an actor's client.
type Device struct {
	Identity string
	suite    uint16 // the suite of its key package
	signer   ed25519.PrivateKey
	leafKey  []byte
	leaf     []byte // the leaf in its key package
	Package  []byte // the KeyPackage without an MLSMessage around it
	Ref      []byte
}

// NewDevice returns a device of an actor, with a key package that is valid for a week.
func NewDevice(identity string, now time.Time) *Device {
	return NewDeviceUntil(identity, now.Add(-time.Hour), now.Add(7*24*time.Hour))
}

// NewDeviceUntil returns a device whose key package is valid between two times.
func NewDeviceUntil(identity string, from, to time.Time) *Device {
	_, signer, _ := ed25519.GenerateKey(rand.Reader) // GenerateKey never fails
	return newDevice(identity, suite, signer, from, to)
}

// NewDeviceFrom returns a device that signs with the key of a seed. In another process the same
// seed makes a device that can replace this device in a group.
func NewDeviceFrom(identity string, seed []byte, now time.Time) *Device {
	return newDevice(identity, suite, ed25519.NewKeyFromSeed(seed), now.Add(-time.Hour), now.Add(7*24*time.Hour))
}

// NewDeviceOfOtherSuite returns a device of an actor. The groups of this package do not use the
// suite of its key package.
func NewDeviceOfOtherSuite(identity string, now time.Time) *Device {
	_, signer, _ := ed25519.GenerateKey(rand.Reader) // GenerateKey never fails
	return newDevice(identity, otherSuite, signer, now.Add(-time.Hour), now.Add(7*24*time.Hour))
}

// Again returns the device with a new key package that has the same signature key.
func (d *Device) Again(now time.Time) *Device {
	return newDevice(d.Identity, d.suite, d.signer, now.Add(-time.Hour), now.Add(7*24*time.Hour))
}

func newDevice(identity string, suite uint16, signer ed25519.PrivateKey, from, to time.Time) *Device {
	d := &Device{Identity: identity, suite: suite, signer: signer, leafKey: newKey()}
	d.leaf = d.newLeaf(d.leafKey, join(uint8(1), uint64(from.Unix()), uint64(to.Unix())))
	signed := join(uint16(1), suite, vector(newKey()), d.leaf, vector())
	d.Package = join(signed, vector(d.sign("KeyPackageTBS", signed)))
	k, err := mls.ParseKeyPackage(d.Package)
	if err == nil {
		d.Ref, err = k.Reference()
	}
	if err != nil {
		panic("mlstest: " + err.Error())
	}
	return d
}

func newKey() []byte {
	k, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic("mlstest: " + err.Error())
	}
	return k.PublicKey().Bytes()
}

// sign does SignWithLabel (RFC 9420 §5.1.2).
func (d *Device) sign(label string, content ...[]byte) []byte {
	return ed25519.Sign(d.signer, join(vector([]byte("MLS 1.0 "+label)), vector(content...)))
}

// newLeaf returns a signed leaf. The parameter source says for which use the leaf is made.
func (d *Device) newLeaf(key, source []byte) []byte {
	capabilities := join(vector(join(uint16(1))), vector(join(d.suite)), vector(), vector(), vector(join(uint16(1))))
	signed := join(vector(key), vector(d.signer.Public().(ed25519.PublicKey)), uint16(1), vector([]byte(d.Identity)), capabilities, source, vector())
	return join(signed, vector(d.sign("LeafNodeTBS", signed)))
}

// Group is a group at one epoch. It does not change.
type Group struct {
	ID     string
	Epoch  uint64
	Leaves []*Device // a blank leaf is nil

	renewed map[*Device][]byte // the leaves that commit paths set, in place of those of key packages
}

// NewGroup returns a group with one device.
func NewGroup(d *Device) *Group { return NewGroupWith("urn:uuid:"+uuid.NewString(), d) }

// NewGroupWith returns a group with the given id and one device.
func NewGroupWith(id string, d *Device) *Group { return &Group{ID: id, Leaves: []*Device{d}} }

func (g *Group) writeContext() []byte {
	return join(uint16(1), uint16(suite), vector([]byte(g.ID)), g.Epoch, vector(make([]byte, 32)), vector(make([]byte, 32)), vector())
}

// Leaf returns the leaf index of a device.
func (g *Group) Leaf(d *Device) uint32 {
	at := slices.Index(g.Leaves, d)
	if at < 0 {
		panic("mlstest: the device is not in the group")
	}
	return uint32(at)
}

func (g *Group) writeTree() []byte {
	var nodes []byte
	for i, d := range g.Leaves {
		if i > 0 {
			nodes = append(nodes, 0) // a blank parent node
		}
		if d == nil {
			nodes = append(nodes, 0)
			continue
		}
		nodes = join(nodes, uint8(1), uint8(1), g.leafOf(d))
	}
	return vector(nodes)
}

func (g *Group) leafOf(d *Device) []byte {
	if leaf := g.renewed[d]; leaf != nil {
		return leaf
	}
	return d.leaf
}

// Info returns a GroupInfo of the group. The device by signs it.
func (g *Group) Info(by *Device) []byte {
	extensions := vector(join(uint16(2), vector(g.writeTree())), join(uint16(4), vector(vector(by.leafKey))))
	signed := join(g.writeContext(), extensions, vector(make([]byte, 32)), g.Leaf(by))
	return writeMessage(mls.FormatGroupInfo, signed, vector(by.sign("GroupInfoTBS", signed)))
}

// Replace returns the group at the same epoch, in which the device by has replaced the device old.
func (g *Group) Replace(old, by *Device) *Group {
	n := &Group{ID: g.ID, Epoch: g.Epoch, Leaves: slices.Clone(g.Leaves), renewed: g.renewed}
	n.Leaves[g.Leaf(old)] = by
	return n
}

// makeNext returns the group at the next epoch, without the removed and with the added devices.
func (g *Group) makeNext(removed []*Device, added []*Device) *Group {
	n := &Group{ID: g.ID, Epoch: g.Epoch + 1, Leaves: slices.Clone(g.Leaves), renewed: maps.Clone(g.renewed)}
	for _, d := range removed {
		n.Leaves[g.Leaf(d)] = nil
	}
	for _, d := range added {
		delete(n.renewed, d)
		if at := slices.Index(n.Leaves, nil); at >= 0 {
			n.Leaves[at] = d
		} else {
			n.Leaves = append(n.Leaves, d)
		}
	}
	for n.Leaves[len(n.Leaves)-1] == nil {
		n.Leaves = n.Leaves[:len(n.Leaves)-1]
	}
	return n
}

// Change names the devices that a commit adds and removes.
type Change struct{ Add, Remove []*Device }

func (g *Group) writeProposals(c Change) (all []byte) {
	for _, d := range c.Add {
		all = join(all, uint8(1), uint16(mls.ProposalAdd), d.Package)
	}
	for _, d := range c.Remove {
		all = join(all, uint8(1), uint16(mls.ProposalRemove), g.Leaf(d))
	}
	return all
}

// writeFrame writes a signed PublicMessage of the group. The message contains random data, so
// that no two messages are equal.
func (g *Group) writeFrame(by *Device, sender []byte, kind mls.ContentType, content []byte) []byte {
	signed := writeMessage(mls.FormatPublicMessage, vector([]byte(g.ID)), g.Epoch, sender, vector(makeNoise(16)), uint8(kind), content)
	m := join(signed, vector(by.sign("FramedContentTBS", signed, g.writeContext())))
	if kind == mls.ContentCommit {
		m = join(m, vector(make([]byte, 32))) // the confirmation_tag
	}
	if sender[0] == byte(mls.SenderMember) {
		m = join(m, vector(make([]byte, 32))) // the membership_tag
	}
	return m
}

// Commit returns a commit of a device, and the group after the commit. A commit that only adds
// devices has no path (RFC 9420 §12.4). Any other commit has a path.
func (g *Group) Commit(by *Device, c Change) (commit []byte, next *Group) {
	if len(c.Add) > 0 && len(c.Remove) == 0 {
		return g.CommitWithoutPath(by, c)
	}
	path, next := g.makeNext(c.Remove, c.Add).renew(by)
	return g.writeCommit(by, c, join(uint8(1), path)), next
}

// CommitWithoutPath is like Commit, but its commit has no path. RFC 9420 forbids such a commit if
// it removes a device or changes nothing.
func (g *Group) CommitWithoutPath(by *Device, c Change) (commit []byte, next *Group) {
	return g.writeCommit(by, c, []byte{0}), g.makeNext(c.Remove, c.Add)
}

func (g *Group) writeCommit(by *Device, c Change, path []byte) []byte {
	content := join(vector(g.writeProposals(c)), path)
	return g.writeFrame(by, join(uint8(mls.SenderMember), g.Leaf(by)), mls.ContentCommit, content)
}

// CommitPath returns a commit with a path and without proposals, and the group after it. By the
// path, the committer's leaf becomes the leaf of another device.
func (g *Group) CommitPath(by, becomes *Device) (commit []byte, next *Group) {
	path, next := g.makeNext(nil, nil).Replace(by, becomes).renew(becomes)
	return g.writeCommit(by, Change{}, join(uint8(1), path)), next
}

// Rejoin returns an external commit and the group after it. By the commit one device joins, and
// others are removed.
func (g *Group) Rejoin(by *Device, removed ...*Device) (commit []byte, next *Group) {
	init := join(uint8(1), uint16(mls.ProposalExternalInit), vector(newKey()))
	path, next := g.makeNext(removed, []*Device{by}).renew(by)
	content := join(vector(init, g.writeProposals(Change{Remove: removed})), uint8(1), path)
	return g.writeFrame(by, []byte{byte(mls.SenderNewMemberCommit)}, mls.ContentCommit, content), next
}

// renew returns a path that gives a device a new leaf. It also returns the group with the new
// leaf.
func (g *Group) renew(d *Device) (path []byte, next *Group) {
	leaf := d.newLeaf(newKey(), join(uint8(3), vector(make([]byte, 32))))
	n := *g
	n.renewed = maps.Clone(g.renewed)
	if n.renewed == nil {
		n.renewed = map[*Device][]byte{}
	}
	n.renewed[d] = leaf
	return join(leaf, vector()), &n
}

// Leave returns a device's proposal to remove itself.
func (g *Group) Leave(by *Device) []byte {
	return g.writeFrame(by, join(uint8(mls.SenderMember), g.Leaf(by)), mls.ContentProposal, join(uint16(mls.ProposalRemove), g.Leaf(by)))
}

// Welcome returns a Welcome for the key packages of devices.
func (g *Group) Welcome(devices ...*Device) []byte {
	var secrets []byte
	for _, d := range devices {
		secrets = join(secrets, vector(d.Ref), vector(makeNoise(32)), vector(makeNoise(100)))
	}
	return writeMessage(mls.FormatWelcome, uint16(suite), vector(secrets), vector(makeNoise(200)))
}

// Message returns an application message. The server can read only its group, epoch and type.
func (g *Group) Message() []byte { return g.writePrivate(mls.ContentApplication, 100) }

// LongMessage is like Message, but the ciphertext has n bytes.
func (g *Group) LongMessage(n int) []byte { return g.writePrivate(mls.ContentApplication, n) }

// PrivateCommit returns a commit that the server cannot read.
func (g *Group) PrivateCommit() []byte { return g.writePrivate(mls.ContentCommit, 100) }

// PrivateProposal returns a proposal that the server cannot read.
func (g *Group) PrivateProposal() []byte { return g.writePrivate(mls.ContentProposal, 100) }

// SealedCommit is like Commit, but the commit is a PrivateMessage.
func (g *Group) SealedCommit(c Change) (commit []byte, next *Group) {
	return g.PrivateCommit(), g.makeNext(c.Remove, c.Add)
}

func (g *Group) writePrivate(t mls.ContentType, n int) []byte {
	return writeMessage(mls.FormatPrivateMessage, vector([]byte(g.ID)), g.Epoch, uint8(t), vector(), vector(makeNoise(28)), vector(makeNoise(n)))
}

// Plain returns an application message that is not encrypted.
func (g *Group) Plain(by *Device) []byte {
	return g.writeFrame(by, join(uint8(mls.SenderMember), g.Leaf(by)), mls.ContentApplication, vector([]byte("words")))
}
