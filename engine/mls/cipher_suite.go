package mls

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"slices"
)

// CipherSuite is a set of algorithms that a group uses (§17.1).
type CipherSuite uint16

// suite has the algorithms of a supported CipherSuite that a delivery service needs. All
// supported suites use SHA-256.
type suite struct {
	name   string
	curve  ecdh.Curve
	verify func(key, content, signature []byte) bool
}

var suites = map[CipherSuite]suite{
	1: {"MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519", ecdh.X25519(), verifyEd25519},
	2: {"MLS_128_DHKEMP256_AES128GCM_SHA256_P256", ecdh.P256(), verifyP256},
	3: {"MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519", ecdh.X25519(), verifyEd25519},
}

// String returns the name of the suite in the registry of IANA, or "" if it is not supported.
func (s CipherSuite) String() string { return suites[s].name }

// isKey reports whether b is a public key of the suite's KEM.
func (s suite) isKey(b []byte) bool {
	_, err := s.curve.NewPublicKey(b)
	return err == nil
}

// verify is VerifyWithLabel (§5.1.2). The content is the concatenation of the given parts.
func (s CipherSuite) verify(key []byte, label string, signature []byte, content ...[]byte) error {
	algorithms, is := suites[s]
	if !is {
		return ErrSuite
	}
	whole := slices.Concat(content...)
	signed := appendVector(appendVector(nil, []byte("MLS 1.0 "+label)), whole)
	if !algorithms.verify(key, signed, signature) {
		return ErrSignature
	}
	return nil
}

func verifyEd25519(key, content, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, content, signature)
}

func verifyP256(key, content, signature []byte) bool {
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), key)
	digest := sha256.Sum256(content)
	return err == nil && ecdsa.VerifyASN1(public, digest[:], signature)
}

// hashReference is RefHash (§5.2).
func (s CipherSuite) hashReference(label string, value []byte) ([]byte, error) {
	if _, is := suites[s]; !is {
		return nil, ErrSuite
	}
	digest := sha256.Sum256(appendVector(appendVector(nil, []byte(label)), value))
	return digest[:], nil
}

// appendVector appends to b the length of v, and then v (§2.1.2).
func appendVector(b, v []byte) []byte {
	switch n := len(v); {
	case n < 1<<6:
		b = append(b, byte(n))
	case n < 1<<14:
		b = append(b, 1<<6|byte(n>>8), byte(n))
	default:
		b = append(b, 2<<6|byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, v...)
}
