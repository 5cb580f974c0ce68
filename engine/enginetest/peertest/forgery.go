package peertest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Forgery is a request whose signature the test makes itself, without the engine's signer. Each
// part of the request can thus be false. A field that is not set gets its true value.
type Forgery struct {
	Method  string // empty: POST
	URL     string
	Body    string        // the body that the digest and the signature cover
	Key     signature.Key // the key that signs: an RSA key signs with SHA-256; an Ed25519 key is possible, too
	Dialect signature.Dialect
	At      time.Time // the time of the signature; zero means now
	Cover   string    // the covered components as the signature's parameter lists them, such as `"@method" "@path"` or "host date"
	Params  string    // the other parameters: `;created=1;keyid="…"`, or `keyId="…",algorithm="…"`
	Before  func(*http.Request)
	After   func(*http.Request) // changes the request after signing; Before changes it before signing
	Sent    string              // if set, this body is sent in place of Body
}

// Request returns the request, ready for a client to send.
func (f Forgery) Request(t testing.TB) *http.Request {
	t.Helper()
	if f.Method == "" {
		f.Method = http.MethodPost
	}
	if f.At.IsZero() {
		f.At = time.Now()
	}
	sent := f.Body
	if f.Sent != "" {
		sent = f.Sent
	}
	r, err := http.NewRequestWithContext(t.Context(), f.Method, f.URL, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Date", f.At.UTC().Format(http.TimeFormat))
	r.Header.Set("Accept", vocab.ActivityJSON)
	if f.Method == http.MethodPost {
		r.Header.Set("Content-Type", vocab.ActivityJSON)
		digest := sha256.Sum256([]byte(f.Body))
		encoded := base64.StdEncoding.EncodeToString(digest[:])
		if f.Dialect == signature.RFC9421 {
			r.Header.Set("Content-Digest", "sha-256=:"+encoded+":")
		} else {
			r.Header.Set("Digest", "SHA-256="+encoded)
		}
	}
	if f.Before != nil {
		f.Before(r)
	}
	if f.Dialect == signature.RFC9421 {
		f.sign(t, r)
	} else {
		f.signCavage(t, r)
	}
	if f.After != nil {
		f.After(r)
	}
	return r
}

// sign signs the request by RFC 9421. It accepts any list of components.
func (f Forgery) sign(t testing.TB, r *http.Request) {
	t.Helper()
	if f.Cover == "" {
		f.Cover = `"@method" "@target-uri"`
		if f.Method == http.MethodPost {
			f.Cover += ` "content-digest"`
		}
	}
	if f.Params == "" {
		f.Params = fmt.Sprintf(`;created=%d;keyid="%s"`, f.At.Unix(), f.Key.ID)
	}
	input := "(" + f.Cover + ")" + f.Params
	var base strings.Builder
	for _, component := range strings.Fields(f.Cover) {
		base.WriteString(component + ": " + f.component(r, component) + "\n")
	}
	base.WriteString(`"@signature-params": ` + input)
	r.Header.Set("Signature-Input", "sig1="+input)
	r.Header.Set("Signature", "sig1=:"+f.seal(t, base.String())+":")
}

// component returns the value of a component, or "" if the component is unknown.
func (f Forgery) component(r *http.Request, component string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(component, `"`), `"`)
	switch name {
	case "@method":
		return r.Method
	case "@target-uri":
		return r.URL.Scheme + "://" + r.Host + r.URL.RequestURI()
	case "@authority":
		return r.Host
	case "@path":
		return r.URL.EscapedPath()
	case "host":
		return r.Host
	}
	return strings.Join(r.Header.Values(name), ", ")
}

// signCavage signs the request by draft-cavage-http-signatures-12.
func (f Forgery) signCavage(t testing.TB, r *http.Request) {
	t.Helper()
	covers := f.Cover
	if covers == "" {
		covers = "(request-target) host date"
		if f.Method == http.MethodPost {
			covers += " digest"
		}
	}
	if f.Params == "" {
		f.Params = `keyId="` + f.Key.ID + `",algorithm="rsa-sha256"`
	}
	var lines []string
	for _, name := range strings.Fields(covers) {
		value := f.component(r, name)
		switch name {
		case "(request-target)":
			value = strings.ToLower(r.Method) + " " + r.URL.RequestURI()
		case "(created)", "(expires)":
			_, value, _ = strings.Cut(f.Params, strings.Trim(name, "()")+"=")
			value, _, _ = strings.Cut(value, ",")
		}
		lines = append(lines, name+": "+value)
	}
	r.Header.Set("Signature", f.Params+`,headers="`+covers+`",signature="`+f.seal(t, strings.Join(lines, "\n"))+`"`)
}

// seal returns the signature of a signature base, in base64.
func (f Forgery) seal(t testing.TB, base string) string {
	t.Helper()
	message, hash := []byte(base), crypto.Hash(0)
	if _, ok := f.Key.Private.Public().(*rsa.PublicKey); ok {
		digest := sha256.Sum256(message)
		message, hash = digest[:], crypto.SHA256
	} else if _, ok := f.Key.Private.Public().(ed25519.PublicKey); !ok {
		t.Fatalf("no way to sign with a %T", f.Key.Private)
	}
	seal, err := f.Key.Private.Sign(rand.Reader, message, hash)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(seal)
}
