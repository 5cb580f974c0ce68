package signature

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/lightweb/lightweb/engine/fault"
)

// probe is one request with its expected result.
type probe struct {
	name    string // begins with ids of docs/conformance.md or docs/security.md
	dialect Dialect
	sign    string // the signature parameters, in which $now is the time; if empty, Sign makes them
	method  string // if empty, POST
	target  string // if empty, "/inbox"
	body    string // the body that is signed; if empty and the method is POST, a note
	key     crypto.Signer
	hash    crypto.Hash         // for draft-cavage with RSA; if zero, SHA-256
	before  func(*http.Request) // changes the request after its digests are set and before it is signed
	after   func(*http.Request) // changes the signed request
	swap    string              // the body that arrives instead of the signed one
	want    string              // the code of the refusal; "" if the request is accepted
}

// These are parameters of valid signatures. Tests vary them.
const (
	rfcTail = `;created=$now;keyid="` + keyID + `"`
	rfcGood = `("@method" "@target-uri" "content-digest")` + rfcTail
	cavHead = `keyId="` + keyID + `",algorithm="rsa-sha256",headers="`
	cavGood = cavHead + `(request-target) host date digest"`
	cavHS   = `keyId="` + keyID + `",algorithm="hs2019",headers="(request-target) (created) host digest"`
)

// request returns p's request as a server receives it.
func (p *probe) request(t *testing.T) (*http.Request, []byte) {
	t.Helper()
	if p.method == "" {
		p.method = http.MethodPost
	}
	if p.target == "" {
		p.target = "/inbox"
	}
	if p.body == "" && p.method == http.MethodPost {
		p.body = note
	}
	if p.key == nil {
		p.key = rsaKey()
	}
	r := newRequest(t, p.method, origin+p.target)
	if err := Sign(r, []byte(p.body), Key{keyID, p.key}, p.dialect, now); err != nil {
		t.Fatal(err)
	}
	r = receive(t, r, p.body)
	if p.before != nil {
		p.before(r)
	}
	if p.sign != "" {
		p.resign(t, r)
	}
	if p.after != nil {
		p.after(r)
	}
	if p.swap != "" {
		return r, []byte(p.swap)
	}
	return r, []byte(p.body)
}

// resign signs r with p's parameters. Some parameters have no signature base. Then resign signs a
// dummy text, because the request must be refused before its signature is verified.
func (p *probe) resign(t *testing.T, r *http.Request) {
	t.Helper()
	params := strings.ReplaceAll(p.sign, "$now", strconv.FormatInt(now.Unix(), 10))
	m, err := newIncoming(r, origin)
	if err != nil {
		t.Fatal(err)
	}
	base := "dummy"
	if p.dialect == RFC9421 {
		r.Header.Set("Signature-Input", "sig1="+params)
		if d, err := httpsfv.UnmarshalDictionary([]string{"sig1=" + params}); err == nil {
			member, _ := d.Get("sig1")
			if list, ok := member.(httpsfv.InnerList); ok {
				if covered, err := componentNames(list); err == nil {
					if b, err := m.signatureBase(list, covered); err == nil {
						base = b
					}
				}
			}
		}
	} else if parsed, err := parseCavageHeader(params); err == nil {
		if b, err := m.cavageBases(strings.Fields(strings.ToLower(parsed["headers"])), parsed); err == nil {
			base = b[len(b)-1] // the last base does not cover the query
		}
	}
	sig, err := signBase(p.key, base)
	if p.hash == crypto.SHA512 {
		h := sha512.Sum512([]byte(base))
		sig, err = rsa.SignPKCS1v15(nil, rsaKey(), crypto.SHA512, h[:])
	}
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(sig)
	if p.dialect == RFC9421 {
		r.Header.Set("Signature", "sig1=:"+encoded+":")
	} else {
		r.Header.Set("Signature", params+`,signature="`+encoded+`"`)
	}
}

// run parses and verifies p's request and checks the result. One valid claim is enough. Examine
// must come to the same result.
func (p *probe) run(t *testing.T) {
	t.Helper()
	r, body := p.request(t)
	claims, err := Parse(r, body, Options{Origin: origin, Now: now})
	x, failure := Examine(r, body, Options{Origin: origin, Now: now})
	if failure != nil {
		t.Fatal(failure)
	}
	if why := disagreement(x, claims, err); why != "" {
		t.Error(why)
	}
	for _, c := range claims {
		if found, verified := refusalIn(c.Examine(p.key.Public())), c.Verify(p.key.Public()); codeOf(found) != codeOf(verified) {
			t.Errorf("Examine with the key found %v, and Verify %v", found, verified)
		}
	}
	if err == nil {
		for _, c := range claims {
			if err = c.Verify(p.key.Public()); err == nil {
				break
			}
		}
	}
	if p.want == "" {
		if err != nil {
			t.Errorf("refused: %v (%s), want accepted", err, codeOf(err))
		}
		return
	}
	if codeOf(err) != p.want || fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("got %v (%s), want %s", err, codeOf(err), p.want)
	}
	if public := fault.Public(err); strings.ContainsAny(public, "\r\n") || len(public) > 200 {
		t.Errorf("public words = %q", public)
	}
}

// set, del and add change one header field. at changes the path of the arriving request.
func set(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}
func del(name string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(name) } }
func add(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}
func at(target string) func(*http.Request) { return func(r *http.Request) { r.RequestURI = target } }
func host(h string) func(*http.Request)    { return func(r *http.Request) { r.Host = h } }

func date(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

func sum256(body string) string {
	return base64.StdEncoding.EncodeToString(hashBody("sha-256", []byte(body)))
}

// keyed returns the parameters of a valid signature in dialect d, with id as the key id.
func keyed(d Dialect, id string) string {
	if d == RFC9421 {
		return strings.Replace(rfcGood, keyID, id, 1)
	}
	return strings.Replace(cavGood, keyID, id, 1)
}

func TestAttacksOnBothDialects(t *testing.T) {
	// for each dialect, components without the target, and components without the digest
	cover := map[Dialect][2]string{
		RFC9421: {`("@method" "content-digest")` + rfcTail, `("@method" "@target-uri")` + rfcTail},
		Cavage:  {cavHead + `host date digest"`, cavHead + `(request-target) host date"`},
	}
	for d, cover := range cover {
		tests := []probe{
			{name: "as Sign made it"},
			{name: "SIG-01 not signed", after: func(r *http.Request) { r.Header.Del("Signature"); r.Header.Del("Signature-Input") }, want: "not_signed"},
			{name: "SIG-04 user info in key id", sign: keyed(d, "https://P2@peer.example/"), want: "bad_key_id"},
			{name: "SIG-04 escaped host in key id", sign: keyed(d, "https://P2%2eP/"), want: "bad_key_id"},
			{name: "SIG-04 no host in key id", sign: keyed(d, "https:///users/x"), want: "bad_key_id"},
			{name: "SIG-04 only a port in key id", sign: keyed(d, "https://:443/x"), want: "bad_key_id"},
			{name: "SIG-06 SIG-20 digest not covered", sign: cover[1], want: "digest_not_covered"},
			{name: "SIG-06 SIG-20 digest not covered, body swapped", sign: cover[1], swap: `{"type":"Delete"}`, want: "digest_not_covered"},
			{name: "SIG-06 body swapped", swap: `{"type":"Delete"}`, want: "digest_mismatch"},
			{name: "SIG-09 target not covered", sign: cover[0], want: "target_not_covered"},
			{name: "SIG-09 other path", after: at("/users/bob/inbox"), want: "bad_signature"},
			{name: "SIG-09 other method", after: func(r *http.Request) { r.Method = "PUT" }, want: "bad_signature"},
			{name: "SIG-10 other host", after: host("other.example"), want: "wrong_host"},
			{name: "SIG-10 no host", after: host(""), want: "wrong_host"},
			{name: "SIG-10 other port", after: host("example.org:8443"), want: "wrong_host"},
			{name: "SIG-13 two hosts", after: set("Host", "other.example"), want: "duplicate_header"},
			{name: "SIG-24 forwarded headers have no say", after: func(r *http.Request) {
				r.Host = "other.example"
				r.Header.Set("X-Forwarded-Host", "example.org")
				r.Header.Set("Forwarded", "host=example.org;proto=https")
			}, want: "wrong_host"},
			{name: "SIG-24 forwarded headers do no harm", after: set("X-Forwarded-Host", "other.example")},
			{name: "SIG-30 acct", sign: keyed(d, "acct:mallory@peer.example"), want: "bad_key_id"},
			{name: "SIG-30 did", sign: keyed(d, "did:web:peer.example"), want: "bad_key_id"},
			{name: "SIG-30 data", sign: keyed(d, "data:text/plain,key"), want: "bad_key_id"},
			{name: "SIG-30 file", sign: keyed(d, "file:///etc/passwd"), want: "bad_key_id"},
			{name: "SIG-30 gopher", sign: keyed(d, "gopher://peer.example/"), want: "bad_key_id"},
			{name: "SIG-30 relative", sign: keyed(d, "/users/mallory#main-key"), want: "bad_key_id"},
			{name: "SIG-30 opaque", sign: keyed(d, "https:peer.example"), want: "bad_key_id"},
			{name: "SIG-30 empty", sign: keyed(d, ""), want: "bad_key_id"},
			{name: "SIG-30 over 1024 bytes", sign: keyed(d, "https://peer.example/"+strings.Repeat("a", 1004)), want: "bad_key_id"},
			{name: "SIG-30 1024 bytes", sign: keyed(d, "https://peer.example/"+strings.Repeat("a", 1003))},
			{name: "SIG-30 64 kB", sign: keyed(d, "https://peer.example/"+strings.Repeat("a", 64<<10)), want: "header_too_large"},
			{name: "SG-12 raw path", target: "/users/a%2Fb;c//d%C3%A9/inbox"},
			{name: "SG-12 path decoded on the way", target: "/users/a%2Fb", after: at("/users/a/b"), want: "bad_signature"},
			{name: "SG-12 path cleaned on the way", target: "/users//b", after: at("/users/b"), want: "bad_signature"},
			{name: "a target that is no path", after: at("*"), want: "bad_target"},
			{name: "a target with a line break", after: at("/a\nhost: example.org"), want: "bad_target"},
			{name: "a target in absolute form", after: at("https://example.org/inbox")},
			{name: "the host in capitals, with the default port", sign: keyed(d, keyID), before: host("EXAMPLE.org:443")},
			{name: "a GET without digest", method: "GET", target: "/users/alice"},
			{name: "a GET with a body", method: "GET", target: "/users/alice", swap: note, want: "digest_not_covered"},
		}
		for _, p := range tests {
			p.dialect = d
			t.Run(d.String()+"/"+p.name, func(t *testing.T) { t.Parallel(); p.run(t) })
		}
	}
}

// SIG-18: if a key has a small order, a forged signature with R of small order and S = 0 is valid
// for many messages.
func TestSmallOrderKeysVerifyNothing(t *testing.T) {
	p := probe{dialect: RFC9421, key: edKey}
	r, body := p.request(t)
	forged := make([]byte, ed25519.SignatureSize)
	forged[0] = 1
	r.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(forged)+":")
	claims, err := Parse(r, body, Options{Origin: origin, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	identity := make(ed25519.PublicKey, ed25519.PublicKeySize)
	identity[0] = 1
	if !isSignature(edwards, identity, claims[0].Bases[0], forged) {
		t.Fatal("the forgery is not one: this test proves nothing")
	}
	if err := claims[0].Verify(identity); codeOf(err) != "weak_key" {
		t.Errorf("Verify = %v, want weak_key", err)
	}
}

// A wrong origin is this server's own mistake, so the fault is Internal.
func TestParseWithoutOriginIsInternal(t *testing.T) {
	for _, o := range []string{"", "example.org", "https://", "https://example.org/", "https://a@example.org"} {
		p := probe{dialect: RFC9421}
		r, body := p.request(t)
		if _, err := Parse(r, body, Options{Origin: o, Now: now}); err == nil || fault.KindOf(err) != fault.Internal {
			t.Errorf("Parse with origin %q = %v, want an internal error", o, err)
		}
	}
}

func TestPSSSignaturesVerify(t *testing.T) {
	p := probe{dialect: RFC9421, sign: rfcGood + `;alg="rsa-pss-sha512"`}
	r, body := p.request(t)
	claims, err := Parse(r, body, Options{Origin: origin, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	h := sha512.Sum512([]byte(claims[0].Bases[0]))
	claims[0].signature, err = rsa.SignPSS(rand.Reader, rsaKey(), crypto.SHA512, h[:], &rsa.PSSOptions{SaltLength: 64})
	if err != nil {
		t.Fatal(err)
	}
	if err := claims[0].Verify(&rsaKey().PublicKey); err != nil {
		t.Errorf("Verify = %v", err)
	}
}

func TestTargetsInAbsoluteForm(t *testing.T) {
	tests := []struct{ target, want string }{
		{"/a?b=//c", "/a?b=//c"},
		{"https://example.org/a?b", "/a?b"},
		{"https://example.org?b=/c", "/?b=/c"},
		{"https://example.org", "/"},
		{"*", "*"},
	}
	for _, tt := range tests {
		if got := originForm(tt.target); got != tt.want {
			t.Errorf("originForm(%q) = %q, want %q", tt.target, got, tt.want)
		}
	}
}

// disagreement describes how the results of Examine and Parse differ. If they do not differ, it
// returns "".
func disagreement(x Examination, claims []Claim, err error) string {
	var good []Claim
	refusal := refusalIn(x.Findings)
	if refusal == nil {
		for _, s := range x.Signatures {
			found := refusalIn(s.Findings)
			switch {
			case found == nil:
				good = append(good, s.Claim)
			case refusal == nil:
				refusal = found
			}
		}
	}
	switch {
	case len(good) > 0 && (err != nil || !reflect.DeepEqual(good, claims)):
		return fmt.Sprintf("Examine found good\n%+v\nand Parse %+v, %v", good, claims, err)
	case len(good) == 0 && (err == nil || refusal == nil || !strings.HasSuffix(err.Error(), ": "+refusal.Error()) || codeOf(err) != codeOf(refusal)):
		return fmt.Sprintf("Examine found %v, and Parse %v", refusal, err)
	}
	return ""
}

// refusalIn returns the first refusal among findings. If a check was not reached although no
// earlier check failed, it returns another error.
func refusalIn(found []Finding) error {
	for _, f := range found {
		if f.Err != nil {
			return f.Err
		}
		if !f.Reached {
			return errors.New("not reached, and nothing failed: " + f.Check)
		}
	}
	return nil
}
