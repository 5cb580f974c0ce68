package signature

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/mr-tron/base58"

	"github.com/lightweb/lightweb/engine/fault"
)

// The algorithms of RFC 9421 §3.3 that peers use.
const (
	rsaSHA256 = "rsa-v1_5-sha256"
	rsaSHA512 = "rsa-v1_5-sha512"
	rsaPSS    = "rsa-pss-sha512"
	edwards   = "ed25519"
)

// The bounds of RSA keys, which are checked before any computation with a key. Smaller keys can
// be broken, and larger keys only cost time.
const (
	minBits     = 2048
	maxBits     = 8192
	minExponent = 65537
	maxExponent = 1<<31 - 1 // crypto/rsa accepts no larger one

	maxPEM      = 8 << 10
	maxMultikey = 2 << 10
)

// algorithmOf returns the algorithm that Sign uses with the private key.
func algorithmOf(private crypto.Signer) (string, error) {
	switch private.(type) {
	case *rsa.PrivateKey:
		return rsaSHA256, nil
	case ed25519.PrivateKey:
		return edwards, nil
	}
	return "", errors.New("the private key is neither an RSA nor an Ed25519 key")
}

func signBase(private crypto.Signer, base string) ([]byte, error) {
	if _, ok := private.(*rsa.PrivateKey); ok {
		hash := sha256.Sum256([]byte(base))
		return private.Sign(rand.Reader, hash[:], crypto.SHA256)
	}
	return private.Sign(rand.Reader, []byte(base), crypto.Hash(0))
}

// isSignature reports whether signature is valid for the text base, the named algorithm and the
// public key.
func isSignature(algorithm string, key crypto.PublicKey, base string, signature []byte) bool {
	if algorithm == edwards {
		k, ok := key.(ed25519.PublicKey)
		return ok && ed25519.Verify(k, []byte(base), signature)
	}
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return false
	}
	switch algorithm {
	case rsaSHA256:
		hash := sha256.Sum256([]byte(base))
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, hash[:], signature) == nil
	case rsaSHA512:
		hash := sha512.Sum512([]byte(base))
		return rsa.VerifyPKCS1v15(k, crypto.SHA512, hash[:], signature) == nil
	case rsaPSS:
		hash := sha512.Sum512([]byte(base))
		return rsa.VerifyPSS(k, crypto.SHA512, hash[:], signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
	}
	return false
}

// ParsePublicKeyPEM returns the RSA key in s, encoded as SPKI or PKCS#1. It refuses a key of
// another type, because peers read publicKeyPem as an RSA key, and an Ed25519 key is published
// as a Multikey.
func ParsePublicKeyPEM(s string) (*rsa.PublicKey, error) {
	if len(s) > maxPEM {
		return nil, badKey("the key is too large")
	}
	block, rest := pem.Decode([]byte(s))
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, badKey("the key is not one PEM block")
	}
	switch block.Type {
	case "PUBLIC KEY":
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, badKey("the key is malformed")
		}
		k, ok := parsed.(*rsa.PublicKey)
		if !ok {
			return nil, badKey("the key is not an RSA key")
		}
		if err := checkRSA(k); err != nil {
			return nil, err
		}
		return k, nil
	case "RSA PUBLIC KEY":
		return parsePKCS1(block.Bytes)
	}
	return nil, badKey("the PEM block is not a public key")
}

func parsePKCS1(der []byte) (*rsa.PublicKey, error) {
	k, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		return nil, badKey("the key is malformed")
	}
	if err := checkRSA(k); err != nil {
		return nil, err
	}
	return k, nil
}

// MarshalPublicKeyPEM returns k encoded as SPKI, which every peer can read.
func MarshalPublicKeyPEM(k *rsa.PublicKey) string {
	der, _ := x509.MarshalPKIXPublicKey(k) // no error, because only an unknown type of key causes one
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// The multicodec prefixes of ed25519-pub (0xed) and rsa-pub (0x1205), as varints.
var (
	codecEd25519 = []byte{0xed, 0x01}
	codecRSA     = []byte{0x85, 0x24}
)

// ParseMultikey returns the key in s, a publicKeyMultibase (FEP-521a). The key is an
// ed25519.PublicKey or an *rsa.PublicKey.
func ParseMultikey(s string) (crypto.PublicKey, error) {
	encoded, ok := strings.CutPrefix(s, "z")
	if !ok || encoded == "" || len(encoded) > maxMultikey {
		return nil, badKey("the key is not written in base58btc")
	}
	raw, err := base58.Decode(encoded)
	if err != nil {
		return nil, badKey("the key is not written in base58btc")
	}
	if der, ok := bytes.CutPrefix(raw, codecRSA); ok {
		k, err := parsePKCS1(der)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
	point, ok := bytes.CutPrefix(raw, codecEd25519)
	if !ok {
		return nil, badKey("the key is neither an Ed25519 nor an RSA key")
	}
	k := ed25519.PublicKey(point)
	if err := checkEd25519(k); err != nil {
		return nil, err
	}
	return k, nil
}

// MarshalMultikey returns k as a publicKeyMultibase.
func MarshalMultikey(k ed25519.PublicKey) string {
	return "z" + base58.Encode(append(bytes.Clone(codecEd25519), k...))
}

func checkRSA(k *rsa.PublicKey) error {
	if k == nil || k.N == nil || k.N.BitLen() < minBits || k.N.BitLen() > maxBits || k.N.Bit(0) == 0 {
		return badKey("an RSA key must have 2048 to 8192 bits")
	}
	if k.E < minExponent || k.E > maxExponent || k.E&1 == 0 {
		return badKey("the exponent of the RSA key is out of bounds")
	}
	return nil
}

// smallOrder holds the y coordinates of the points of order 1, 2, 4 and 8. If such a point is
// the public key, anybody can make signatures that fit any message.
var smallOrder = [][]byte{
	decodeHex("0100000000000000000000000000000000000000000000000000000000000000"),
	decodeHex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	decodeHex("0000000000000000000000000000000000000000000000000000000000000000"),
	decodeHex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
	decodeHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
}

func decodeHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // the table above is wrong
	}
	return b
}

// checkEd25519 refuses keys of the wrong size or of small order, and points in a non-canonical
// encoding (RFC 8032 §5.1.3: y is below 2^255-19).
func checkEd25519(k ed25519.PublicKey) error {
	if len(k) != ed25519.PublicKeySize {
		return badKey("an Ed25519 key has 32 bytes")
	}
	y := bytes.Clone(k)
	y[31] &= 0x7f // the highest bit is the sign of x
	for _, small := range smallOrder {
		if bytes.Equal(y, small) {
			return badKey("the Ed25519 key is of small order")
		}
	}
	if y[31] == 0x7f && y[0] >= 0xed && bytes.Count(y[1:31], []byte{0xff}) == 30 {
		return badKey("the Ed25519 key is not written canonically")
	}
	return nil
}

func badKey(public string) error { return fault.New(fault.Invalid, public).WithCode("bad_key") }
