package signature

import (
	"crypto"
	"net/http"
	"strings"
	"testing"
)

func benchmarkVerify(b *testing.B, key crypto.Signer, d Dialect) {
	body := strings.Repeat("x", 1200)
	r := newRequest(b, http.MethodPost, origin+"/inbox")
	if err := Sign(r, []byte(body), Key{keyID, key}, d, now); err != nil {
		b.Fatal(err)
	}
	r = receive(b, r, body)
	b.ReportAllocs()
	for b.Loop() {
		claims, err := Parse(r, []byte(body), Options{Origin: origin, Now: now})
		if err != nil {
			b.Fatal(err)
		}
		if err := claims[0].Verify(key.Public()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkSign(b *testing.B, key crypto.Signer, d Dialect) {
	body := []byte(strings.Repeat("x", 1200))
	r := newRequest(b, http.MethodPost, origin+"/inbox")
	b.ReportAllocs()
	for b.Loop() {
		if err := Sign(r, body, Key{keyID, key}, d, now); err != nil {
			b.Fatal(err)
		}
	}
}

func eachDialect(b *testing.B, run func(*testing.B, Dialect)) {
	for _, d := range []Dialect{RFC9421, Cavage} {
		b.Run(d.String(), func(b *testing.B) { run(b, d) })
	}
}

func BenchmarkVerifyRSA(b *testing.B) {
	eachDialect(b, func(b *testing.B, d Dialect) { benchmarkVerify(b, rsaKey(), d) })
}

func BenchmarkVerifyEd25519(b *testing.B) {
	eachDialect(b, func(b *testing.B, d Dialect) { benchmarkVerify(b, edKey, d) })
}

func BenchmarkSignRSA(b *testing.B) {
	eachDialect(b, func(b *testing.B, d Dialect) { benchmarkSign(b, rsaKey(), d) })
}

func BenchmarkSignEd25519(b *testing.B) {
	eachDialect(b, func(b *testing.B, d Dialect) { benchmarkSign(b, edKey, d) })
}
