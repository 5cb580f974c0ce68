package cmd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	bob     = "https://peer.example/users/bob"
	bobsKey = bob + "#key"
)

// captured is a request that was written to a file.
type captured struct {
	dialect signature.Dialect
	method  string
	origin  string // the origin that the request was signed for
	body    string
	keyID   string
	before  func(http.Header)
	after   func(text string) string
}

var signedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var bobsSecret = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))

func (c captured) text(t *testing.T) string {
	t.Helper()
	if c.method == "" {
		c.method, c.body = http.MethodPost, strings.TrimSpace(c.body+" ")
		if c.body == "" {
			c.body = `{"@context":"https://www.w3.org/ns/activitystreams","id":"https://peer.example/activities/1","type":"Like","actor":"` + bob + `","object":"https://example.org/users/alice/objects/1"}`
		}
	}
	if c.origin == "" {
		c.origin = "https://example.org"
	}
	if c.keyID == "" {
		c.keyID = bobsKey
	}
	r, err := http.NewRequest(c.method, c.origin+"/users/alice/inbox?a=b", strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/activity+json")
	r.Header.Set("User-Agent", "peer/1.0")
	if err := signature.Sign(r, []byte(c.body), signature.Key{ID: c.keyID, Private: bobsSecret}, c.dialect, signedAt); err != nil {
		t.Fatal(err)
	}
	if c.before != nil {
		c.before(r.Header)
	}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	if c.after != nil {
		return c.after(text.String())
	}
	return text.String()
}

func replaced(old, new string) func(string) string {
	return func(s string) string {
		if !strings.Contains(s, old) {
			panic("the request does not hold " + old)
		}
		return strings.Replace(s, old, new, 1)
	}
}

// actorOf returns bob's document with a key. The parameter multibase is the key.
func actorOf(multibase string) []byte {
	return vocab.Doc{"@context": vocab.ContextAS, "id": bob, "type": "Person", "preferredUsername": "bob", "inbox": bob + "/inbox",
		"assertionMethod": []any{vocab.Doc{"id": bobsKey, "type": "Multikey", "controller": bob, "publicKeyMultibase": multibase}}}.JSON()
}

// age matches the text that says how long ago a time was. That text differs from run to run.
var age = regexp.MustCompile(`, \S+( days)? (ago|from now)`)

// TestExplanations compares explanations of requests with testdata/golden/sig_explain. A valid
// request in each dialect is explained, and a failure of every check. Rewrite the files with: go
// test ./cmd -update
func TestExplanations(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	multibase := signature.MarshalMultikey(bobsSecret.Public().(ed25519.PublicKey))
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("bob.json", actorOf(multibase))
	inPEM := vocab.Doc{"@context": vocab.ContextAS, "id": bob, "type": "Person", "inbox": bob + "/inbox",
		"publicKey": vocab.Doc{"id": bobsKey, "owner": bob, "publicKeyPem": signature.MarshalPublicKeyPEM(&weak.PublicKey)}}
	write("registry/server.json", []byte(`{"blocked_domains":["peer.example"],"allowed_domains":[]}`))
	_ = inPEM
	rfc := func(c captured) captured { c.dialect = signature.RFC9421; return c }
	cavage := func(c captured) captured { c.dialect = signature.Cavage; return c }
	like := func(actor string) string {
		return `{"id":"` + actor + `/1","type":"Like","actor":"` + actor + `","object":"https://example.org/users/alice/objects/1"}`
	}
	input := func(old, new string) func(http.Header) {
		return func(h http.Header) { h.Set("Signature-Input", replaced(old, new)(h.Get("Signature-Input"))) }
	}
	param := func(old, new string) func(http.Header) {
		return func(h http.Header) { h.Set("Signature", replaced(old, new)(h.Get("Signature"))) }
	}
	for _, tt := range []struct {
		name string
		captured
		args string // arguments in addition to --key
		key  string
		exit int
	}{
		{"good rfc9421", rfc(captured{}), "", key, 0},
		{"good cavage", cavage(captured{}), "", key, 0},
		{"good get", cavage(captured{method: "GET"}), "", key, 0},
		{"good with the key alone", rfc(captured{}), "", write("key", []byte(multibase+"\n")), 0},
		{"host rewritten rfc9421", rfc(captured{after: replaced("Host: example.org", "Host: 127.0.0.1:8080")}), "", key, 76},
		{"host rewritten cavage", cavage(captured{after: replaced("Host: example.org", "Host: 127.0.0.1:8080")}), "", key, 76},
		{"host of another server", cavage(captured{origin: "https://other.example"}), "", key, 76},
		{"target", rfc(captured{after: replaced("POST /users/alice/inbox?a=b", "POST *")}), "", key, 76},
		{"headers not signed", rfc(captured{before: func(h http.Header) { h.Del("Signature"); h.Del("Signature-Input") }}), "", key, 76},
		{"headers twice", cavage(captured{before: func(h http.Header) { h.Add("Date", h.Get("Date")) }}), "", key, 76},
		{"headers whose labels differ", rfc(captured{before: input("sig1=", "sig2=")}), "", key, 76},
		{"form", cavage(captured{before: param(`="`, `='`)}), "", key, 76},
		{"algorithm", rfc(captured{before: input("ed25519\"", "hmac-sha256\"")}), "", key, 76},
		{"components", rfc(captured{before: input(`"@method"`, `"@method" "@method"`)}), "", key, 76},
		{"coverage rfc9421", rfc(captured{before: input(`"content-digest" `, "")}), "", key, 76},
		{"coverage cavage", cavage(captured{before: param(" digest", "")}), "", key, 76},
		{"time too old", rfc(captured{}), "--at 2026-03-01T14:30:00Z", key, 76},
		{"time of a clock that is ahead", cavage(captured{}), "--at 2026-03-01T09:30:00+00:00", key, 76},
		{"time expired", rfc(captured{before: input(";keyid", ";expires=1772366460;keyid")}), "--at 2026-03-01T12:02:00Z", key, 76},
		{"time missing", rfc(captured{before: input(";created=1772366400", "")}), "", key, 76},
		{"time malformed", cavage(captured{before: func(h http.Header) { h.Set("Date", "yesterday") }}), "", key, 76},
		{"key_id", rfc(captured{before: input(bobsKey, "acct:bob@peer.example")}), "", key, 76},
		{"digest of another body", rfc(captured{after: replaced("Like", "Lick")}), "", key, 76},
		{"digest of a body that is cut off", cavage(captured{after: func(s string) string { return s[:len(s)-10] }}), "", key, 76},
		{"base", rfc(captured{before: func(h http.Header) { h.Del("Content-Type") }}), "", key, 76},
		{"policy", rfc(captured{}), "--data-dir " + dir, key, 77},
		{"key_server", rfc(captured{body: like("https://other.example/users/carol")}), "", key, 76},
		{"key not listed", rfc(captured{keyID: bob + "#other"}), "", key, 76},
		{"owner", rfc(captured{body: like("https://peer.example/users/carol")}), "", key, 76},
		{"usable", rfc(captured{}), "", write("broken.json", actorOf("zzz")), 76},
		{"usable but for its length", cavage(captured{}), "", write("weak.json", inPEM.JSON()), 76},
		{"agreement", cavage(captured{before: param("hs2019", "rsa-sha256")}), "", key, 76},
		{"verified path rewritten", rfc(captured{after: replaced("/users/alice/inbox", "/inbox")}), "", key, 76},
		{"verified by another scheme", rfc(captured{origin: "http://example.org"}), "", key, 76},
		{"verified by another key", rfc(captured{}), "", write("other.json", actorOf(signature.MarshalMultikey(ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)))), 76},
		{"body", rfc(captured{body: `{"type":`}), "", key, 76},
		{"sender", rfc(captured{body: like("https://example.org/users/alice")}), "", key, 76},
		{"two signatures", rfc(captured{before: func(h http.Header) {
			h.Set("Signature-Input", `old=("@method");created=1;keyid="https://peer.example/old", `+h.Get("Signature-Input"))
			h.Set("Signature", `old=:AAAA:, `+h.Get("Signature"))
		}}), "", key, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append(strings.Fields("sig explain - --origin https://example.org "+tt.args), "--key", tt.key)
			if !strings.Contains(tt.args, "--data-dir") {
				args = append(args, "--data-dir", filepath.Join(dir, "none"))
			}
			text := tt.text(t)
			var out, errs bytes.Buffer
			code := Main(context.Background(), args, []string{"HOME=" + dir}, strings.NewReader(text), &out, &errs)
			if code != tt.exit {
				t.Errorf("exit %d, want %d", code, tt.exit)
			}
			got := fmt.Sprintf("%s\n\n$ lightweb sig explain -%s\n%s%s", strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")),
				strings.TrimRight(" "+strings.ReplaceAll(tt.args, dir, "DIR"), " "), age.ReplaceAllString(out.String(), ""), errs.String())
			path := filepath.Join("..", "testdata", "golden", "sig_explain", strings.ReplaceAll(tt.name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("wrote\n%s\nwant\n%s", got, want)
			}
			if code := Main(context.Background(), append(args, "--json"), []string{"HOME=" + dir}, strings.NewReader(text), &out, &errs); code != tt.exit || !json.Valid(out.Bytes()[strings.LastIndex(out.String(), "\n{")+1:]) {
				t.Errorf("with --json exit %d and %s", code, out.String())
			}
		})
	}
}
