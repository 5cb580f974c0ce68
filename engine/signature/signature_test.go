package signature

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-fed/httpsig"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	origin = "https://example.org"
	keyID  = "https://peer.example/users/mallory#main-key"
	note   = `{"type":"Create"}`
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

var edKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// receive returns the request r as a server receives it: written to the wire and read by net/http.
func receive(t testing.TB, r *http.Request, body string) *http.Request {
	t.Helper()
	if body != "" {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func newRequest(t testing.TB, method, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/activity+json")
	} else {
		r.Header.Set("Accept", "application/activity+json")
	}
	return r
}

func codeOf(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

// TestSignedRequestsVerifyAtAServer sends requests to a real server. So Host and RequestURI are as
// in production.
func TestSignedRequestsVerifyAtAServer(t *testing.T) {
	type result struct {
		claims []Claim
		err    error
	}
	results := make(chan result, 1)
	var origin string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			results <- result{err: err}
			return
		}
		claims, err := Parse(r, body, Options{Origin: origin, Now: now.Add(59 * time.Minute)})
		results <- result{claims, err}
	}))
	defer server.Close()
	origin = server.URL

	keys := []struct {
		name   string
		public crypto.PublicKey
		Key
	}{
		{"RSA", &rsaKey().PublicKey, Key{keyID, rsaKey()}},
		{"Ed25519", edKey.Public(), Key{keyID, edKey}},
	}
	targets := []struct{ name, method, path, body string }{
		{"GET", http.MethodGet, "/users/alice", ""},
		{"GET with query", http.MethodGet, "/users/alice/outbox?page=true&min_id=0", ""},
		{"GET of an escaped path", http.MethodGet, "/users/caf%C3%A9/a%2Fb;c//d", ""},
		{"GET without path", http.MethodGet, "", ""},
		{"POST", http.MethodPost, "/inbox", note},
	}
	for _, d := range []Dialect{RFC9421, Cavage} {
		for _, k := range keys {
			for _, tt := range targets {
				t.Run(fmt.Sprintf("%s/%s/%s", d, k.name, tt.name), func(t *testing.T) {
					r := newRequest(t, tt.method, server.URL+tt.path)
					if tt.body != "" {
						r.Body, r.ContentLength = io.NopCloser(strings.NewReader(tt.body)), int64(len(tt.body))
					}
					if err := Sign(r, []byte(tt.body), k.Key, d, now); err != nil {
						t.Fatal(err)
					}
					resp, err := server.Client().Do(r)
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close() // the body is empty
					got := <-results
					if got.err != nil {
						t.Fatalf("Parse = %v", got.err)
					}
					c := got.claims[0]
					if len(got.claims) != 1 || c.Dialect != d || c.KeyID != keyID || !c.Created.Equal(now) {
						t.Fatalf("claims = %+v, want one in %s by %s, made %s", got.claims, d, keyID, now)
					}
					if err := c.Verify(k.public); err != nil {
						t.Errorf("Verify = %v", err)
					}
				})
			}
		}
	}
}

func TestSignCoversWhatPeersAskFor(t *testing.T) {
	tests := []struct {
		name, method, body string
		d                  Dialect
		key                crypto.Signer
		header, want       string
	}{
		{"RFC 9421 GET", "GET", "", RFC9421, rsaKey(), "Signature-Input",
			`sig1=("@method" "@target-uri" "@authority");created=1793534400;keyid="` + keyID + `";alg="rsa-v1_5-sha256"`},
		{"RFC 9421 POST", "POST", note, RFC9421, edKey, "Signature-Input",
			`sig1=("@method" "@target-uri" "@authority" "content-digest" "content-type");created=1793534400;keyid="` + keyID + `";alg="ed25519"`},
		{"cavage GET", "GET", "", Cavage, rsaKey(), "Signature",
			`keyId="` + keyID + `",algorithm="rsa-sha256",headers="(request-target) host date accept",signature="`},
		{"cavage POST", "POST", note, Cavage, rsaKey(), "Signature",
			`keyId="` + keyID + `",algorithm="rsa-sha256",headers="(request-target) host date digest content-type",signature="`},
		{"cavage by Ed25519", "POST", note, Cavage, edKey, "Signature",
			`keyId="` + keyID + `",algorithm="hs2019",headers="(request-target) host date digest content-type",signature="`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRequest(t, tt.method, origin+"/inbox")
			if err := Sign(r, []byte(tt.body), Key{keyID, tt.key}, tt.d, now); err != nil {
				t.Fatal(err)
			}
			if got := r.Header.Get(tt.header); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s = %s, want %s", tt.header, got, tt.want)
			}
			if got := r.Header.Get("Date"); got != "Sun, 01 Nov 2026 12:00:00 GMT" {
				t.Errorf("Date = %s", got)
			}
			if r.Header.Get("Host") != "" {
				t.Error("Host was left among the headers")
			}
		})
	}
}

// FE-08: the Collection-Synchronization field counts only if the signature covers it. That holds
// in both dialects.
func TestTheFollowersFieldIsCovered(t *testing.T) {
	const field, said = "Collection-Synchronization", `collectionId="https://peer.example/f", url="https://peer.example/s", digest="00"`
	for _, d := range []Dialect{RFC9421, Cavage} {
		t.Run(d.String(), func(t *testing.T) {
			r := newRequest(t, http.MethodPost, origin+"/inbox")
			r.Header.Set(field, said)
			if err := Sign(r, []byte(note), Key{keyID, rsaKey()}, d, now); err != nil {
				t.Fatal(err)
			}
			for name, change := range map[string]func(http.Header){
				"":         func(http.Header) {},
				"changed":  func(h http.Header) { h.Set(field, strings.Replace(said, "00", "01", 1)) },
				"doubled":  func(h http.Header) { h.Add(field, said) },
				"left out": func(h http.Header) { h.Del(field) },
			} {
				received := receive(t, r, note)
				change(received.Header)
				claims, err := Parse(received, []byte(note), Options{Origin: origin, Now: now})
				if err == nil {
					err = claims[0].Verify(&rsaKey().PublicKey)
				}
				switch {
				case name != "" && err == nil:
					t.Errorf("the field was %s, and the signature holds", name)
				case name == "" && (err != nil || !slices.Contains(claims[0].Covered, "collection-synchronization")):
					t.Errorf("covered %q, %v", claims, err)
				}
			}
		})
	}
}

func TestSigningAgainReplacesTheOtherDialect(t *testing.T) {
	r := newRequest(t, http.MethodPost, origin+"/inbox")
	for _, d := range []Dialect{RFC9421, Cavage, RFC9421, RFC9421} {
		if err := Sign(r, []byte(note), Key{keyID, edKey}, d, now); err != nil {
			t.Fatal(err)
		}
		received := receive(t, r, note)
		claims, err := Parse(received, []byte(note), Options{Origin: origin, Now: now})
		if err != nil || len(claims) != 1 || claims[0].Dialect != d {
			t.Fatalf("after %s: claims = %+v, %v", d, claims, err)
		}
		if n := len(received.Header["Signature"]); n != 1 {
			t.Errorf("after %s: %d signature lines, want 1", d, n)
		}
		if received.Header.Get("Digest") != "" && received.Header.Get("Content-Digest") != "" {
			t.Errorf("after %s: the digest of the other dialect is still there", d)
		}
	}
}

func TestSignRefusesWhatItCannotSign(t *testing.T) {
	tests := []struct {
		name, url string
		key       Key
		d         Dialect
	}{
		{"a relative URL", "/inbox", Key{keyID, edKey}, RFC9421},
		{"another scheme", "ftp://example.org/inbox", Key{keyID, edKey}, RFC9421},
		{"a host that is not ASCII", "https://bücher.example/inbox", Key{keyID, edKey}, Cavage},
		{"no key", origin, Key{ID: keyID}, RFC9421},
		{"no key id", origin, Key{Private: edKey}, RFC9421},
		{"no dialect", origin, Key{keyID, edKey}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := Sign(newRequest(t, "GET", tt.url), nil, tt.key, tt.d, now); err == nil {
				t.Error("was signed")
			}
		})
	}
}

// TestHTTPSigAgreesWithUs compares our draft-cavage code with another implementation.
func TestHTTPSigAgreesWithUs(t *testing.T) {
	r := newRequest(t, http.MethodPost, origin+"/inbox?a=b")
	if err := Sign(r, []byte(note), Key{keyID, rsaKey()}, Cavage, now); err != nil {
		t.Fatal(err)
	}
	v, err := httpsig.NewVerifier(receive(t, r, note))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(&rsaKey().PublicKey, httpsig.RSA_SHA256); err != nil {
		t.Errorf("httpsig does not verify what we signed: %v", err)
	}

	covered := []string{"(request-target)", "(created)", "(expires)", "host", "date", "digest"}
	signer, _, err := httpsig.NewSigner([]httpsig.Algorithm{httpsig.RSA_SHA512}, httpsig.DigestSha256, covered, httpsig.Signature, 60)
	if err != nil {
		t.Fatal(err)
	}
	wall := time.Now() // httpsig uses the real clock
	r = newRequest(t, http.MethodPost, origin+"/inbox?a=b")
	r.Header.Set("Host", "example.org")
	r.Header.Set("Date", wall.UTC().Format(http.TimeFormat))
	if err := signer.SignRequest(rsaKey(), keyID, r, []byte(note)); err != nil {
		t.Fatal(err)
	}
	claims, err := Parse(receive(t, r, note), []byte(note), Options{Origin: origin, Now: wall})
	if err != nil {
		t.Fatal(err)
	}
	if err := claims[0].Verify(&rsaKey().PublicKey); err != nil {
		t.Errorf("we do not verify what httpsig signed: %v", err)
	}
}

func TestVerifyRefusesOtherKeys(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	otherEd, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		signer crypto.Signer
		key    crypto.PublicKey
		want   string
	}{
		{"another RSA key", rsaKey(), &other.PublicKey, "bad_signature"},
		{"a weak RSA key", weak, &weak.PublicKey, "weak_key"},
		{"another Ed25519 key", edKey, otherEd, "bad_signature"},
		{"a cut Ed25519 key", edKey, otherEd[:31], "weak_key"},
		{"an Ed25519 key for RSA", rsaKey(), otherEd, "algorithm_mismatch"},
		{"no key", rsaKey(), nil, "unknown_key_type"},
		{"no RSA key", rsaKey(), (*rsa.PublicKey)(nil), "weak_key"},
		{"an RSA key without modulus", rsaKey(), &rsa.PublicKey{E: 65537}, "weak_key"},
	}
	for _, tt := range tests {
		for _, d := range []Dialect{RFC9421, Cavage} {
			t.Run(tt.name+"/"+d.String(), func(t *testing.T) {
				r := newRequest(t, http.MethodGet, origin+"/users/alice")
				if err := Sign(r, nil, Key{keyID, tt.signer}, d, now); err != nil {
					t.Fatal(err)
				}
				claims, err := Parse(receive(t, r, ""), nil, Options{Origin: origin, Now: now})
				if err != nil {
					t.Fatal(err)
				}
				if err := claims[0].Verify(tt.key); codeOf(err) != tt.want || fault.KindOf(err) != fault.Unauthenticated {
					t.Errorf("Verify = %v (%s), want %s", err, codeOf(err), tt.want)
				}
			})
		}
	}
}

func TestDialectsAreReadAsTheyAreWritten(t *testing.T) {
	for _, d := range []Dialect{RFC9421, Cavage} {
		if got, err := ParseDialect(d.String()); got != d || err != nil {
			t.Errorf("ParseDialect(%q) = %v, %v", d, got, err)
		}
	}
	if _, err := ParseDialect("unknown"); err == nil {
		t.Error("an unknown dialect was read")
	}
}

func TestKeysStayOutOfLogs(t *testing.T) {
	var b strings.Builder
	k := Key{keyID, edKey}
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "key", k)
	b.WriteString(fmt.Sprintf("%v %+v %s", k, k, k))
	if s := b.String(); strings.Count(s, "REDACTED") != 4 || strings.Contains(s, "7 7 7") {
		t.Errorf("wrote %s", s)
	}
}
