package signature

import (
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// parseFuzzed parses a POST with the given headers. It fails the test if Parse panics, if a
// refusal has no kind or code, if a claim has no key id, or if a claim verifies.
func parseFuzzed(t *testing.T, headers map[string]string) {
	r := httptest.NewRequest(http.MethodPost, "/inbox?a=b", strings.NewReader(note))
	r.Host = "example.org"
	r.Header.Set("Date", now.Format(http.TimeFormat))
	r.Header.Set("Digest", digestField([]byte(note)))
	r.Header.Set("Content-Digest", contentDigestField([]byte(note)))
	for k, v := range headers {
		r.Header.Set(k, v)
	}
	claims, err := Parse(r, []byte(note), Options{Origin: origin, Now: now})
	if err != nil {
		if fault.KindOf(err) != fault.Unauthenticated || codeOf(err) == "" || strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("Parse = %v (%s)", err, codeOf(err))
		}
		return
	}
	if len(claims) == 0 || len(claims) > maxLabels {
		t.Fatalf("%d claims", len(claims))
	}
	for _, c := range claims {
		if checkKeyID(c.KeyID) != nil || len(c.Bases) == 0 || len(c.signature) == 0 {
			t.Fatalf("claim %+v", c)
		}
		if err := c.Verify(edKey.Public()); err == nil {
			t.Fatal("a signature came out of nothing")
		}
	}
}

func FuzzParseSignatureInput(f *testing.F) {
	f.Add(`sig1=("@method" "@target-uri" "content-digest");created=1793534400;keyid="`+keyID+`"`, `sig1=:AA==:`)
	f.Add(`sig1=("@method" "@authority" "@path" "@query" "content-digest");created=1793534400;keyid="`+keyID+`";alg="ed25519";expires=1793534401`, `sig1=:AA==:`)
	f.Add(`a=(), b=("x";req);y="\"", c`, `a=:AA==:, b=::, c`)
	f.Add(`a=();x=%"\";y=1.5;z=@1;w=?0;v=*t`, `a=:AA==:`)
	f.Fuzz(func(t *testing.T, input, signature string) {
		parseFuzzed(t, map[string]string{"Signature-Input": input, "Signature": signature})
	})
}

// FuzzParseCavageHeader also checks that Parse accepts each request that Sign signs, in either
// dialect.
func FuzzParseCavageHeader(f *testing.F) {
	f.Add(`keyId="`+keyID+`",algorithm="hs2019",headers="(request-target) host date digest",signature="AA=="`, "SHA-256=AA==", "/inbox", "body")
	f.Add(`keyId="x",created=1,expires=2,headers="(created)",signature=AA==`, "md5=x,SHA-256=", "/a%2Fb?c=d", "")
	f.Add(` a = "b"`, "", "//x/..;", "x")
	f.Fuzz(func(t *testing.T, header, dig, target, body string) {
		parseFuzzed(t, map[string]string{"Signature": header})
		parseFuzzed(t, map[string]string{"Signature": header, "Digest": dig})

		r, err := http.NewRequest(http.MethodPost, origin+"/"+strings.TrimPrefix(target, "/"), nil)
		if err != nil || r.URL.Host != "example.org" {
			t.Skip("no URL of ours")
		}
		for _, d := range []Dialect{RFC9421, Cavage} {
			if body == "" {
				r.Method = http.MethodGet
			}
			if err := Sign(r, []byte(body), Key{keyID, edKey}, d, now); err != nil {
				t.Skip("a URL that cannot be sent")
			}
			claims, err := Parse(receive(t, r, body), []byte(body), Options{Origin: origin, Now: now})
			if err != nil {
				t.Fatalf("%s: Parse = %v", d, err)
			}
			if err := claims[0].Verify(edKey.Public()); err != nil {
				t.Fatalf("%s: Verify = %v", d, err)
			}
		}
	})
}

func FuzzParseMultikey(f *testing.F) {
	f.Add(MarshalMultikey(edKey.Public().(ed25519.PublicKey)))
	f.Add("z")
	f.Add("z11111111111111111111111111111111111111111111")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseMultikey(s)
		if err != nil {
			if k != nil || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("ParseMultikey = %v, %v", k, err)
			}
			return
		}
		if ed, ok := k.(ed25519.PublicKey); ok && MarshalMultikey(ed) != s {
			t.Fatalf("MarshalMultikey(ParseMultikey(%q)) = %q", s, MarshalMultikey(ed))
		}
	})
}
