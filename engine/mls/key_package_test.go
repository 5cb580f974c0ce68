package mls

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

var now = time.Unix(noon, 0)

const days84 = 84 * 24 * time.Hour

func TestKeyPackageIsReadBareAndWrapped(t *testing.T) {
	t.Parallel()
	for suite := CipherSuite(1); suite <= 3; suite++ {
		d := newDevice(t, suite, 1)
		bare := d.keyPackage(t, d.draft())
		for form, b := range map[string][]byte{"bare": bare, "wrapped": message(FormatKeyPackage, bare)} {
			k, err := ParseKeyPackage(b)
			if err != nil {
				t.Fatalf("suite %d, %s: %v", suite, form, err)
			}
			if k.Suite != suite || !bytes.Equal(k.Raw, bare) || string(k.Leaf.Identity) != alice || k.Leaf.NotAfter != noon+week {
				t.Errorf("suite %d, %s: %+v", suite, form, k)
			}
			if err := k.Check(alice, now, days84); err != nil {
				t.Errorf("suite %d, %s: %v", suite, form, err)
			}
		}
	}
}

// A key package of suite 5 without an MLSMessage begins with the same bytes as one with an
// MLSMessage. The parser distinguishes them by the length of the init key.
func TestKeyPackageOfSuite5IsReadBare(t *testing.T) {
	t.Parallel()
	d := newDevice(t, 1, 1)
	p := d.draft()
	p.suite, p.initKey = 5, make([]byte, 133)
	bare := d.keyPackage(t, p)
	for form, b := range map[string][]byte{"bare": bare, "wrapped": message(FormatKeyPackage, bare)} {
		k, err := ParseKeyPackage(b)
		if err != nil || k.Suite != 5 || !bytes.Equal(k.Raw, bare) || string(k.Leaf.Identity) != alice {
			t.Fatalf("%s: %+v, %v; want suite 5 of %s", form, k, err, alice)
		}
		if err := k.Check(alice, now, days84); !errors.Is(err, ErrSuite) {
			t.Errorf("%s: Check = %v, want %v", form, err, ErrSuite)
		}
		if ref, err := k.Reference(); !errors.Is(err, ErrSuite) {
			t.Errorf("%s: Reference = %x, %v; want %v", form, ref, err, ErrSuite)
		}
	}
}

func TestCheckNamesTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		suite CipherSuite
		alter func(*draft)
		want  error
	}{
		{"84 days", 1, lifetime(noon, noon+84*24*3600), nil},
		{"84 days and a second", 1, lifetime(noon-1, noon+84*24*3600), ErrLifetime},
		{"from now on", 1, lifetime(noon, noon+1), nil},
		{"not yet", 1, lifetime(noon+1, noon+week), ErrLifetime},
		{"until now", 1, lifetime(noon-week, noon), nil},
		{"expired", 1, lifetime(noon-week, noon-1), ErrLifetime},
		{"for ever", 1, lifetime(0, 1<<64-1), ErrLifetime},
		{"from the end of time to its beginning", 1, lifetime(1<<64-1, 0), ErrLifetime},
		{"unknown suite", 1, func(p *draft) { p.suite = 0x0a0a }, ErrSuite},
		{"leaf of a commit", 1, func(p *draft) { p.source = join(uint8(leafOfCommit), vector()) }, ErrLeafSource},
		{"leaf of an update", 1, func(p *draft) { p.source = join(uint8(leafOfUpdate)) }, ErrLeafSource},
		{"leaf of nothing", 1, func(p *draft) { p.source = join(uint8(4)) }, ErrLeafSource},
		{"unknown credential", 1, func(p *draft) { p.credential = join(uint16(0x0a0a), vector()) }, ErrCredential},
		{"somebody else", 1, func(p *draft) { p.credential = basic(alice + "/") }, ErrIdentity},
		{"nobody", 1, func(p *draft) { p.credential = basic("") }, ErrIdentity},
		{"X.509", 1, func(p *draft) { p.credential = join(uint16(credentialX509), vector(vector([]byte(alice)))) }, ErrIdentity},
		{"one key for two uses", 1, func(p *draft) { p.initKey = p.leafKey }, ErrKey},
		{"no init key", 1, func(p *draft) { p.initKey = nil }, ErrKey},
		{"a short key", 1, func(p *draft) { p.leafKey = p.leafKey[:31] }, ErrKey},
		{"no point of the curve", 2, func(p *draft) { p.initKey = append([]byte{4}, make([]byte, 64)...) }, ErrKey},
		{"a compressed point", 2, func(p *draft) { p.leafKey = append([]byte{2}, p.leafKey[1:33]...) }, ErrKey},
		{"a key of another suite", 2, func(p *draft) { p.suite = 1 }, ErrKey},
	} {
		d := newDevice(t, c.suite, 1)
		p := d.draft()
		c.alter(&p)
		k, err := ParseKeyPackage(d.keyPackage(t, p))
		if err == nil {
			err = k.Check(alice, now, days84)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func lifetime(from, until uint64) func(*draft) {
	return func(p *draft) { p.source = join(uint8(leafOfKeyPackage), from, until) }
}

func TestCheckRefusesSignaturesThatDoNotHold(t *testing.T) {
	t.Parallel()
	for suite := CipherSuite(1); suite <= 3; suite++ {
		d, other := newDevice(t, suite, 1), newDevice(t, suite, 2)
		bare := d.keyPackage(t, d.draft())
		k, err := ParseKeyPackage(bare)
		if err != nil {
			t.Fatal(err)
		}
		spans := map[string][]byte{
			"the init key": k.initKey, "the leaf's signature": k.Leaf.signature, "the package's signature": k.signature,
		}
		for name, span := range spans {
			span[len(span)-1] ^= 1
			if err := k.Check(alice, now, days84); !errors.Is(err, ErrSignature) && (suite != 2 || !errors.Is(err, ErrKey)) {
				t.Errorf("suite %d, a bit of %s: Check = %v, want %v", suite, name, err, ErrSignature)
			}
			span[len(span)-1] ^= 1
		}
		leaf := d.leaf(t, d.draft())
		leaf[len(leaf)-1] ^= 1
		inner, err := ParseKeyPackage(d.keyPackageOf(t, d.draft(), leaf))
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.Check(alice, now, days84); !errors.Is(err, ErrSignature) {
			t.Errorf("suite %d, a package of a leaf that is not signed: Check = %v, want %v", suite, err, ErrSignature)
		}
		k.Leaf.SignatureKey = other.key
		if err := k.Check(alice, now, days84); !errors.Is(err, ErrSignature) {
			t.Errorf("suite %d, another key: Check = %v, want %v", suite, err, ErrSignature)
		}
		k.Leaf.SignatureKey = nil
		if err := k.Check(alice, now, days84); !errors.Is(err, ErrSignature) {
			t.Errorf("suite %d, no key: Check = %v, want %v", suite, err, ErrSignature)
		}
	}
}

func TestCipherSuiteHasTheNameOfIANA(t *testing.T) {
	t.Parallel()
	for suite, want := range map[CipherSuite]string{1: "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519", 2: "MLS_128_DHKEMP256_AES128GCM_SHA256_P256", 5: ""} {
		if got := suite.String(); got != want {
			t.Errorf("suite %d is %q, want %q", uint16(suite), got, want)
		}
	}
}
