package mls

import (
	"bytes"
	"time"
)

// KeyPackage is published by a device so that others can add the device to groups (§10).
type KeyPackage struct {
	Suite   CipherSuite
	initKey []byte
	Leaf    LeafNode
	Raw     []byte // the KeyPackage without an MLSMessage around it

	signed    []byte // the KeyPackageTBS
	signature []byte
}

// wrapped is the start of a KeyPackage inside an MLSMessage: the version and the wire format of
// the message, then the version of the package. A KeyPackage without a message begins with its
// version and its suite. If that suite is 5, the first four bytes of the package are the same as
// in wrapped. But then the length of the init key follows, which is 133 and written as 0x4085. So
// the next two bytes differ from those of wrapped.
var wrapped = []byte{0, mls10, 0, byte(FormatKeyPackage), 0, mls10}

// ParseKeyPackage reads a KeyPackage, either by itself, as other servers publish it, or inside
// an MLSMessage.
func ParseKeyPackage(b []byte) (*KeyPackage, error) {
	if bytes.HasPrefix(b, wrapped) {
		b = b[4:]
	}
	r := reader{rest: b}
	k := r.readKeyPackage()
	if err := r.finish(); err != nil {
		return nil, err
	}
	return k, nil
}

func (r *reader) readKeyPackage() *KeyPackage {
	start := r.rest
	r.readVersion()
	k := &KeyPackage{Suite: CipherSuite(r.readUint16()), initKey: r.readVector()}
	k.Leaf = *r.readLeafOf(leafOfKeyPackage)
	r.skipExtensions()
	k.signed = r.readSince(start)
	k.signature = r.readVector()
	k.Raw = r.readSince(start)
	return k
}

// Reference returns the KeyPackageRef, by which a Welcome names the package (§5.2).
func (k *KeyPackage) Reference() ([]byte, error) {
	return k.Suite.hashReference("MLS 1.0 KeyPackage Reference", k.Raw)
}

// Check refuses a package that nobody may add to a group at the time now (§7.3, §10.1). It
// refuses a suite that is not supported, a credential that is not a basic one with the given
// identity, keys that are not of the suite, and one key for two uses. It also refuses a package
// outside its lifetime, a lifetime longer than the parameter longest, and signatures that are not
// valid.
func (k *KeyPackage) Check(identity string, now time.Time, longest time.Duration) error {
	suite, is := suites[k.Suite]
	switch {
	case !is:
		return ErrSuite
	case k.Leaf.Identity == nil || string(k.Leaf.Identity) != identity:
		return ErrIdentity
	case !suite.isKey(k.initKey), !suite.isKey(k.Leaf.encryptionKey), bytes.Equal(k.initKey, k.Leaf.encryptionKey):
		return ErrKey
	}
	if err := k.Leaf.checkLifetime(uint64(now.Unix()), uint64(longest/time.Second)); err != nil {
		return err
	}
	return k.checkSignatures()
}

func (k *KeyPackage) checkSignatures() error {
	if err := k.Suite.verify(k.Leaf.SignatureKey, "LeafNodeTBS", k.Leaf.signature, k.Leaf.signed); err != nil {
		return err
	}
	return k.Suite.verify(k.Leaf.SignatureKey, "KeyPackageTBS", k.signature, k.signed)
}
