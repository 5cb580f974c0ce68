package signature

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
)

func pemOf(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

func spki(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// modulus returns an odd number with the given number of bits. The number need not be a product of
// two primes, because the parser does not check that.
func modulus(bits int) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	return n.SetBit(n, 0, 1)
}

func TestRSAKeysInPEM(t *testing.T) {
	good := &rsaKey().PublicKey
	pkcs1 := x509.MarshalPKCS1PublicKey
	tests := []struct {
		name, pem string
		ok        bool
	}{
		{"SG-22 SPKI", MarshalPublicKeyPEM(good), true},
		{"SG-22 PKCS#1", pemOf("RSA PUBLIC KEY", pkcs1(good)), true},
		{"SG-22 8192 bits", pemOf("RSA PUBLIC KEY", pkcs1(&rsa.PublicKey{N: modulus(8192), E: 65537})), true},
		{"CRLF and blank lines around", "\r\n" + strings.ReplaceAll(MarshalPublicKeyPEM(good), "\n", "\r\n") + "\r\n", true},
		{"SIG-17 512 bits", pemOf("RSA PUBLIC KEY", pkcs1(&rsa.PublicKey{N: modulus(512), E: 65537})), false},
		{"SIG-17 2047 bits", pemOf("RSA PUBLIC KEY", pkcs1(&rsa.PublicKey{N: modulus(2047), E: 65537})), false},
		{"SIG-17 16384 bits", pemOf("RSA PUBLIC KEY", pkcs1(&rsa.PublicKey{N: modulus(16384), E: 65537})), false},
		{"SIG-17 e=1", pemOf("PUBLIC KEY", spki(t, &rsa.PublicKey{N: good.N, E: 1})), false},
		{"SIG-17 e=3", pemOf("PUBLIC KEY", spki(t, &rsa.PublicKey{N: good.N, E: 3})), false},
		{"SIG-17 e even", pemOf("PUBLIC KEY", spki(t, &rsa.PublicKey{N: good.N, E: 65538})), false},
		{"SIG-17 e beyond crypto/rsa", pemOf("PUBLIC KEY", spki(t, &rsa.PublicKey{N: good.N, E: 1<<32 + 1})), false},
		{"SIG-17 even modulus", pemOf("PUBLIC KEY", spki(t, &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 2047), E: 65537})), false},
		{"SIG-17 private key", pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), false},
		{"SIG-17 private key labelled as a public one", pemOf("PUBLIC KEY", x509.MarshalPKCS1PrivateKey(rsaKey())), false},
		{"SIG-17 five megabytes", strings.Repeat("A", 5<<20), false},
		{"D3 Ed25519", pemOf("PUBLIC KEY", spki(t, edKey.Public())), false},
		{"two keys", MarshalPublicKeyPEM(good) + MarshalPublicKeyPEM(good), false},
		{"trailing bytes", pemOf("PUBLIC KEY", append(spki(t, good), 0)), false},
		{"empty", "", false},
		{"no PEM", "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, err := ParsePublicKeyPEM(tt.pem)
			if (err == nil) != tt.ok || (k != nil) != tt.ok {
				t.Errorf("ParsePublicKeyPEM = %v, %v, want ok = %v", k, err, tt.ok)
			}
		})
	}
	if k, err := ParsePublicKeyPEM(MarshalPublicKeyPEM(good)); err != nil || !k.Equal(good) {
		t.Error("a key is not read as it was written")
	}
}

func TestMultikeys(t *testing.T) {
	public := edKey.Public().(ed25519.PublicKey)
	raw := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	ed := func(point []byte) string { return "z" + base58.Encode(append([]byte{0xed, 0x01}, point...)) }
	rsaMultikey := func(k *rsa.PublicKey) string {
		return "z" + base58.Encode(append([]byte{0x85, 0x24}, x509.MarshalPKCS1PublicKey(k)...))
	}
	tests := []struct {
		name, key string
		ok        bool
	}{
		{"Ed25519", MarshalMultikey(public), true},
		{"FEP-521a example", "z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2", true},
		{"RSA", rsaMultikey(&rsaKey().PublicKey), true},
		{"SIG-17 RSA of 1024 bits", rsaMultikey(&rsa.PublicKey{N: modulus(1024), E: 65537}), false},
		{"SIG-18 order 1", ed(raw("0100000000000000000000000000000000000000000000000000000000000000")), false},
		{"SIG-18 order 1 with sign", ed(raw("0100000000000000000000000000000000000000000000000000000000000080")), false},
		{"SIG-18 order 2", ed(raw("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")), false},
		{"SIG-18 order 4", ed(make([]byte, 32)), false},
		{"SIG-18 order 8", ed(raw("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")), false},
		{"SIG-18 order 8, the other", ed(raw("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")), false},
		{"SIG-18 zero, not canonical", ed(raw("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")), false},
		{"SIG-18 one, not canonical", ed(raw("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff")), false},
		{"close to not canonical", ed(raw("edffffffffffffffffffffffffffff7fffffffffffffffffffffffffffffff7f")), true},
		{"SIG-18 short", ed(public[:31]), false},
		{"SIG-18 long", ed(append(bytes.Clone(public), 0)), false},
		{"SIG-18 X25519 codec", "z" + base58.Encode(append([]byte{0xec, 0x01}, public...)), false},
		{"SIG-18 no codec", "z" + base58.Encode(public), false},
		{"SIG-18 base64url", "u7QFKdmX0", false},
		{"SIG-18 not base58", "z0OIl", false},
		{"not ASCII", "zé€", false},
		{"only the prefix", "z", false},
		{"empty", "", false},
		{"one megabyte", "z" + strings.Repeat("2", 1<<20), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, err := ParseMultikey(tt.key)
			if (err == nil) != tt.ok || (k != nil) != tt.ok {
				t.Errorf("ParseMultikey = %v, %v, want ok = %v", k, err, tt.ok)
			}
		})
	}
	if k, err := ParseMultikey(MarshalMultikey(public)); err != nil || !public.Equal(k) {
		t.Error("a key is not read as it was written")
	}
}
