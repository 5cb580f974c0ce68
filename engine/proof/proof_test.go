package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"
	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const method = "https://peer.example/users/carol#ed25519-key"

var (
	now     = time.Date(2026, 11, 2, 12, 0, 0, 999, time.FixedZone("", 3600))
	private = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public  = private.Public().(ed25519.PublicKey)
)

const note = `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],"id":"https://peer.example/1","type":"Create",
	"actor":"https://peer.example/users/carol","object":{"id":"https://peer.example/2","type":"Note","content":"gr\u00fc\u00df dich \ud83d\ude00","totalItems":3,"latitude":25.273962}}`

func read(t testing.TB, raw string) vocab.Doc {
	t.Helper()
	d, err := vocab.ParseDoc([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// signed returns the note with a proof, parsed from its JSON.
func signed(t testing.TB) vocab.Doc {
	t.Helper()
	d, err := Sign(read(t, note), method, private, now)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(d.JSON()))
}

// resigned returns the note with a proof whose options change() has changed. Its signature is
// valid for these options.
func resigned(t testing.TB, change func(options vocab.Doc)) vocab.Doc {
	t.Helper()
	d := signed(t)
	o := d.Sub("proof")
	change(o)
	covered, err := hashParts(d, o)
	if err != nil {
		t.Fatal(err)
	}
	o["proofValue"] = "z" + base58.Encode(ed25519.Sign(private, covered))
	return d
}

// verify parses and verifies a proof. It returns "none" if there is no proof, "" if the proof is
// valid, and otherwise the code of the refusal.
func verify(t testing.TB, d vocab.Doc, key ed25519.PublicKey) string {
	t.Helper()
	p, err := Parse(d, now)
	switch {
	case err == nil && p == nil:
		return "none"
	case err == nil && p.Method != method:
		t.Fatalf("Method = %q", p.Method)
	case err == nil:
		err = p.Verify(key)
	}
	if err == nil {
		return ""
	}
	if fault.KindOf(err) != fault.Unauthenticated {
		t.Fatalf("%v, want unauthenticated", err)
	}
	return fault.Of(err).Code
}

func TestWhatIsSignedVerifies(t *testing.T) {
	d := signed(t)
	if code := verify(t, d, public); code != "" {
		t.Errorf("refused: %s", code)
	}
	o := d.Sub("proof")
	if o.Text("created") != "2026-11-02T11:00:00Z" { // UTC in whole seconds, because peers format the time again before they hash it
		t.Errorf("created %q", o["created"])
	}
	if len(o) != 7 || !strings.HasPrefix(o.Text("proofValue"), "z") {
		t.Errorf("options %s", o.JSON())
	}
	if again, err := Sign(d, method, private, now); err != nil || !bytes.Equal(again.JSON(), d.JSON()) {
		t.Errorf("signed again: %s, %v; want the proof replaced", again.JSON(), err)
	}
	unsigned := read(t, note)
	if _, err := Sign(unsigned, method, private, now); err != nil || unsigned["proof"] != nil {
		t.Errorf("the document was changed, or %v", err)
	}
	bare := vocab.Doc{"type": "Note"}
	if d, err := Sign(bare, method, private, now); err != nil || verify(t, d, public) != "" {
		t.Errorf("without @context: %v", err)
	}
	if _, err := Sign(vocab.Doc{"n": json.Number("9007199254740993")}, method, private, now); err == nil {
		t.Error("a document without canonical form is signed")
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(bare, method, other, now); err == nil {
		t.Error("an RSA key signs")
	}
}

func TestProofs(t *testing.T) {
	set := func(name string, v any) func(vocab.Doc) { return func(o vocab.Doc) { o[name] = v } }
	list := func(n int) func(vocab.Doc) vocab.Doc {
		return func(d vocab.Doc) vocab.Doc {
			proofs := []any{}
			for range n {
				proofs = append(proofs, d["proof"])
			}
			d["proof"] = proofs
			return d
		}
	}
	after := func(change func(vocab.Doc)) func(vocab.Doc) vocab.Doc {
		return func(d vocab.Doc) vocab.Doc { change(d); return d }
	}
	option := func(name string, v any) func(vocab.Doc) vocab.Doc {
		return after(func(d vocab.Doc) { d.Sub("proof")[name] = v })
	}
	contexts := func(more ...any) []any {
		return append([]any{"https://www.w3.org/ns/activitystreams", "https://w3id.org/security/data-integrity/v1"}, more...)
	}
	for _, tt := range []struct {
		name   string
		before func(vocab.Doc)           // changes the options before the proof is signed
		after  func(vocab.Doc) vocab.Doc // changes the document after the proof is signed
		want   string
	}{
		{"as it was made", nil, nil, ""},
		{"none", nil, after(func(d vocab.Doc) { delete(d, "proof") }), "none"},
		{"null", nil, after(func(d vocab.Doc) { d["proof"] = nil }), "none"},
		{"a list of one", nil, list(1), ""},
		{"SIG-34 two", nil, list(2), "proof_not_one"},
		{"an empty list", nil, list(0), "proof_not_one"},
		{"a text", nil, after(func(d vocab.Doc) { d["proof"] = "https://peer.example/proof" }), "proof_not_one"},
		{"FE-06 beside a Linked Data signature", nil, after(func(d vocab.Doc) { d["signature"] = vocab.Doc{"type": "RsaSignature2017"} }), ""},

		{"another type", set("type", "Ed25519Signature2020"), nil, "none"},
		{"another cryptosuite", set("cryptosuite", "eddsa-rdfc-2022"), nil, "none"},
		{"a key that is not on the web", set("verificationMethod", "did:key:z6Mk#z6Mk"), nil, "none"},
		{"two types", set("type", []any{kind, kind}), nil, "proof_malformed"},
		{"no cryptosuite", set("cryptosuite", nil), nil, "proof_malformed"},
		{"an embedded key", set("verificationMethod", vocab.Doc{"id": method}), nil, "proof_malformed"},

		{"SIG-34 another purpose", set("proofPurpose", "authentication"), nil, "proof_purpose"},
		{"no purpose", set("proofPurpose", nil), nil, "proof_purpose"},
		{"two purposes", set("proofPurpose", []any{purpose}), nil, "proof_purpose"},
		{"nanoseconds", set("created", "2026-11-02T10:59:59.123456789Z"), nil, ""},
		{"another zone", set("created", "2026-11-02T12:59:59+02:00"), nil, ""},
		{"an hour ahead", set("created", "2026-11-02T12:00:00Z"), nil, ""},
		{"more than an hour ahead", set("created", "2026-11-02T12:00:01Z"), nil, "proof_created"},
		{"years ago", set("created", "2023-02-24T23:36:38Z"), nil, ""},
		{"no time", set("created", nil), nil, "proof_created"},
		{"no zone", set("created", "2026-11-02T10:00:00"), nil, "proof_created"},
		{"no date", set("created", "yesterday"), nil, "proof_created"},
		{"it expires later", set("expires", "2026-11-02T11:00:01Z"), nil, ""},
		{"SIG-34b it has expired", set("expires", "2026-11-02T11:00:00Z"), nil, "proof_expired"},
		{"SIG-34b it expires nobody knows when", set("expires", json.Number("1")), nil, "proof_expired"},
		{"SIG-34b an option nobody knows", set("extra", []any{"x"}), nil, ""},
		{"SIG-34b a nonce", set("nonce", "x"), nil, ""},
		{"SIG-34b a domain", set("domain", "peer.example"), nil, "proof_bound"},
		{"SIG-34b a challenge", set("challenge", "x"), nil, "proof_bound"},
		{"a chain of proofs", set("previousProof", "urn:uuid:1"), nil, "proof_bound"},
		{"without a @context of its own", func(o vocab.Doc) { delete(o, "@context") }, nil, ""},
		{"another @context of its own", set("@context", contexts("https://w3id.org/identity/v1")), nil, "proof_context"},

		{"SIG-34b an option that was added", nil, option("nonce", "x"), "proof_wrong"},
		{"SIG-34b an expiry that was put off", set("expires", "2026-11-02T11:00:01Z"), option("expires", "2027-11-02T11:00:01Z"), "proof_wrong"},
		{"SIG-34b an expiry that was taken away", set("expires", "2026-11-02T11:00:01Z"), after(func(d vocab.Doc) { delete(d.Sub("proof"), "expires") }), "proof_wrong"},
		{"another key named", nil, option("verificationMethod", method+"2"), "other method"},
		{"SIG-33 a context that was added", nil, after(func(d vocab.Doc) { d["@context"] = contexts(vocab.Doc{"content": "as:summary"}) }), "proof_context"},
		{"SIG-33 a context that was added to both", nil, after(func(d vocab.Doc) {
			d["@context"] = contexts(vocab.Doc{"content": "as:summary"})
			d.Sub("proof")["@context"] = d["@context"]
		}), "proof_wrong"},
		{"other words", nil, after(func(d vocab.Doc) { d.Sub("object")["content"] = "buy" }), "proof_wrong"},
		{"a property that was added", nil, after(func(d vocab.Doc) { d["summary"] = "x" }), "proof_wrong"},
		{"SIG-35 a number written in another way", nil, after(func(d vocab.Doc) { d.Sub("object")["latitude"] = json.Number("2.5273962E1") }), ""},
		{"SIG-35 an integer without double", nil, after(func(d vocab.Doc) { d.Sub("object")["totalItems"] = json.Number("9007199254740993") }), "proof_form"},
		{"no proofValue", nil, option("proofValue", nil), "proof_value"},
		{"a proofValue in another base", nil, option("proofValue", "u"+strings.Repeat("A", 86)), "proof_value"},
		{"a proofValue of 63 bytes", nil, option("proofValue", "z"+base58.Encode(bytes.Repeat([]byte{1}, 63))), "proof_value"},
		{"a proofValue of 65 bytes", nil, option("proofValue", "z"+base58.Encode(bytes.Repeat([]byte{1}, 65))), "proof_value"},
		{"a proofValue without end", nil, option("proofValue", "z"+strings.Repeat("1", 1<<20)), "proof_value"},
		{"a proofValue of nothing", nil, option("proofValue", "z"+strings.Repeat("1", 64)), "proof_wrong"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := signed(t)
			if tt.before != nil {
				d = resigned(t, tt.before)
			}
			if tt.after != nil {
				d = tt.after(d)
			}
			if tt.want == "other method" {
				if p, err := Parse(d, now); err != nil || p.Method != method+"2" || p.Verify(public) == nil {
					t.Errorf("Parse = %+v, %v", p, err)
				}
				return
			}
			if got := verify(t, d, public); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestSignaturesThatAreNotCanonical(t *testing.T) {
	d := signed(t)
	o := d.Sub("proof")
	value, err := base58.Decode(o.Text("proofValue")[1:])
	if err != nil {
		t.Fatal(err)
	}
	// RFC 8032 §5.1.7: S must be lower than the order of the group. Without that check, S plus
	// the order would also be valid.
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	carry := 0
	for i, b := range order {
		sum := int(value[32+i]) + int(b) + carry
		value[32+i], carry = byte(sum), sum>>8
	}
	o["proofValue"] = "z" + base58.Encode(value)
	if code := verify(t, d, public); code != "proof_wrong" {
		t.Errorf("SIG-18: a second way to write a signature is %q, want refused", code)
	}
	for _, key := range []ed25519.PublicKey{nil, public[:31], ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)} {
		if code := verify(t, signed(t), key); code != "proof_wrong" {
			t.Errorf("with the key %x: %q", key, code)
		}
	}
}

// The engine verifies an activity of Fedify 2.3.8. Fedify added a Linked Data signature to the
// activity after the proof.
func TestAProofByFedify(t *testing.T) {
	raw, err := os.ReadFile("testdata/fedify-create.json")
	if err != nil {
		t.Fatal(err)
	}
	key, err := base58.Decode("6MkjzcgDS69bCmWZVqQ4hPvnBdzUN725PjJSG1vvTy65cTg")
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, string(raw))
	p, err := Parse(d, now.AddDate(1, 0, 0))
	if err != nil || p == nil {
		t.Fatalf("Parse = %v, %v", p, err)
	}
	if err := p.Verify(key[2:]); err != nil || !strings.HasSuffix(string(p.Method), "#multikey-2") {
		t.Errorf("%s: %v", p.Method, err)
	}
}

// A change of any byte of a document or of its proof makes the proof invalid, unless the canonical
// form stays the same.
func TestAnyChangeBreaksTheProof(t *testing.T) {
	raw := signed(t).JSON()
	was, err := read(t, string(raw)).Canonical()
	if err != nil {
		t.Fatal(err)
	}
	for at := range raw {
		for _, b := range []byte{raw[at] ^ 1, 'x', '0'} {
			changed := bytes.Clone(raw)
			changed[at] = b
			d, err := vocab.ParseDoc(changed)
			if err != nil {
				continue
			}
			if is, err := d.Canonical(); err == nil && bytes.Equal(was, is) {
				continue // this is the same document in another form
			}
			if p, err := Parse(d, now); err == nil && p != nil && p.Method == method && p.Verify(public) == nil {
				t.Errorf("the proof holds for %s", changed)
			}
		}
	}
}

func TestWhateverIsSignedVerifies(t *testing.T) {
	text := rapid.StringN(0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		doc := vocab.Doc{}
		for name, v := range rapid.MapOf(text, text).Draw(t, "members") {
			doc[name] = []any{v, vocab.Doc{v: rapid.Bool().Draw(t, "flag")}}
		}
		doc, err := Sign(doc, method, private, now)
		if err != nil {
			t.Fatal(err)
		}
		d, err := vocab.ParseDoc(doc.JSON())
		if err != nil {
			t.Skip("it holds what is refused") // documents with NUL are refused
		}
		if p, err := Parse(d, now); err != nil || p == nil || p.Verify(public) != nil {
			t.Fatalf("%s: %v, %v", doc.JSON(), p, err)
		}
	})
}

func FuzzParseProof(f *testing.F) {
	f.Add([]byte(signed(f).JSON()))
	f.Add([]byte(`{"proof":[{"type":"DataIntegrityProof","cryptosuite":"eddsa-jcs-2022","verificationMethod":"https://a.example/k","proofPurpose":"assertionMethod","created":"2026-01-01T00:00:00Z","proofValue":"z` + strings.Repeat("1", 64) + `"}]}`))
	f.Add([]byte(`{"@context":{},"proof":{"@context":{},"type":["DataIntegrityProof"],"created":1e308,"expires":null}}`))
	stranger := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := vocab.ParseDoc(raw)
		if err != nil {
			return
		}
		before := d.JSON()
		p, err := Parse(d, now)
		if err != nil && (p != nil || fault.KindOf(err) != fault.Unauthenticated || fault.Of(err).Code == "") {
			t.Fatalf("Parse = %v, %v", p, err)
		}
		if p != nil && (p.Method.Host() == "" || p.Verify(stranger) == nil) {
			t.Fatalf("a proof came out of nothing: %+v", p)
		}
		if !bytes.Equal(d.JSON(), before) {
			t.Fatal("parsing changed the document")
		}
	})
}
