package signature

import (
	"bufio"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/lightweb/lightweb/engine/fault"
)

// published reads a request from testdata as a server does.
func published(t *testing.T, name string) *http.Request {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // the file was only read
	r, err := http.ReadRequest(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func publishedBlock(t *testing.T, name string) *pem.Block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatalf("%s is not PEM", name)
	}
	return block
}

func publishedKey(t *testing.T, name string) crypto.PublicKey {
	t.Helper()
	block := publishedBlock(t, name)
	if k, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return k
	}
	k, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// labelled returns the covered components and the signature of the only label of a request.
func labelled(t *testing.T, r *http.Request) (httpsfv.InnerList, []byte) {
	t.Helper()
	in, err := parseDictionary(r.Header, "Signature-Input")
	if err != nil {
		t.Fatal(err)
	}
	out, err := parseDictionary(r.Header, "Signature")
	if err != nil {
		t.Fatal(err)
	}
	list, _ := in.Get(in.Names()[0])
	sig, _ := out.Get(in.Names()[0])
	return list.(httpsfv.InnerList), sig.(httpsfv.Item).Value.([]byte)
}

// The requests in RFC 9421 cover less than this engine requires, and their key ids are not URLs.
// So this test calls the functions that Parse uses.
func TestPublishedRFC9421SignaturesVerify(t *testing.T) {
	tests := []struct{ name, key, algorithm string }{
		{"b21", "test-key-rsa-pss", rsaPSS},
		{"b23", "test-key-rsa-pss", rsaPSS},
		{"b26", "test-key-ed25519", edwards},
		{"4.3-proxy", "test-key-rsa", rsaSHA256},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := published(t, "rfc9421/"+tt.name+".http")
			m, err := newIncoming(r, "https://"+r.Host)
			if err != nil {
				t.Fatal(err)
			}
			list, sig := labelled(t, r)
			covered, err := componentNames(list)
			if err != nil {
				t.Fatal(err)
			}
			base, err := m.signatureBase(list, covered)
			if err != nil {
				t.Fatal(err)
			}
			key := publishedKey(t, "rfc9421/"+tt.key+".pem")
			if !isSignature(tt.algorithm, key, base, sig) {
				t.Errorf("does not verify over\n%s", base)
			}
			if isSignature(tt.algorithm, key, base+" ", sig) {
				t.Error("verifies over another base")
			}
			if err := checkContentDigest(r.Header, []byte(`{"hello": "world"}`)); err != nil {
				t.Errorf("content-digest: %v", err)
			}
		})
	}
}

func TestPublishedSignatureBaseOfB26(t *testing.T) {
	r := published(t, "rfc9421/b26.http")
	m, err := newIncoming(r, "https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	list, sig := labelled(t, r)
	covered, err := componentNames(list)
	if err != nil {
		t.Fatal(err)
	}
	base, err := m.signatureBase(list, covered)
	if err != nil {
		t.Fatal(err)
	}
	want := `"date": Tue, 20 Apr 2021 02:07:55 GMT
"@method": POST
"@path": /foo
"@authority": example.com
"content-type": application/json
"content-length": 18
"@signature-params": ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`
	if base != want {
		t.Errorf("base =\n%s\nwant\n%s", base, want)
	}
	private, err := x509.ParsePKCS8PrivateKey(publishedBlock(t, "rfc9421/test-key-ed25519-private.pem").Bytes)
	if err != nil {
		t.Fatal(err)
	}
	got, err := signBase(private.(ed25519.PrivateKey), base)
	if err != nil || string(got) != string(sig) {
		t.Errorf("signature = %x, %v, want %x", got, err, sig)
	}
}

func TestPublishedSignaturesThatCoverTooLittleAreRefused(t *testing.T) {
	tests := []struct{ name, want string }{
		{"b21", "method_not_covered"},
		{"b22", "component_parameter"},
		{"b26", "target_not_covered"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(published(t, "rfc9421/"+tt.name+".http"), []byte(`{"hello": "world"}`),
				Options{Origin: "https://example.com", Now: time.Unix(1618884473, 0)})
			if f := fault.Of(err); f == nil || f.Code != tt.want {
				t.Errorf("Parse = %v, want %s", err, tt.want)
			}
		})
	}
}

// The signature of draft-cavage-12, Appendix C.2, is valid. Its key has only 1,024 bits, so this
// test calls the functions that Claim.Verify uses.
func TestPublishedCavageSignatureVerifies(t *testing.T) {
	r := published(t, "cavage/c2.http")
	m, err := newIncoming(r, "https://example.com")
	if err != nil {
		t.Fatal(err)
	}
	params, err := parseCavageHeader(r.Header.Get("Signature"))
	if err != nil {
		t.Fatal(err)
	}
	bases, err := m.cavageBases(strings.Fields(params["headers"]), params)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := base64.StdEncoding.DecodeString(params["signature"])
	if err != nil {
		t.Fatal(err)
	}
	if !isSignature(rsaSHA256, publishedKey(t, "cavage/Test.pem"), bases[0], sig) {
		t.Errorf("does not verify over\n%s", bases[0])
	}
	if err := checkDigest(r.Header, []byte(`{"hello": "world"}`)); err != nil {
		t.Errorf("digest: %v", err)
	}
}
