package engine_test

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnSignatures(t *testing.T) {
	t.Parallel()
	newSiege(t, fmt.Sprintf("LIGHTWEB_LIMITS_KEY_FETCH_RATE=20/min burst %d", keyFetches)).play(signatureAttacks)
}

// keyFetches is how many keys of one server the engine may fetch at once in these tests.
const keyFetches = 100

// dialects lists both ways to sign.
var dialects = []signature.Dialect{signature.Cavage, signature.RFC9421}

// keyed returns the parameters of a valid signature in dialect d, with keyID as the key id.
func keyed(d signature.Dialect, keyID string) string {
	if d == signature.RFC9421 {
		return fmt.Sprintf(`;created=%d;keyid="%s"`, time.Now().Unix(), keyID)
	}
	return `keyId="` + keyID + `",algorithm="rsa-sha256"`
}

// dial connects to the engine. The connection has a deadline of one minute.
func (s *siege) dial() net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", host(s.home.URL))
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		s.Fatal(err)
	}
	return conn
}

// raw sends raw bytes and returns the answer. If there is no answer, the status is 0.
func (s *siege) raw(request string) enginetest.Answer {
	s.Helper()
	conn := s.dial()
	defer conn.Close()
	if _, err := conn.Write([]byte(request)); err != nil {
		s.Logf("the engine hung up: %v", err)
	}
	return s.answer(conn)
}

// answer reads an answer from a connection.
func (s *siege) answer(from io.Reader) enginetest.Answer {
	s.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(from), nil)
	if err != nil {
		s.Logf("no answer: %v", err)
		return enginetest.Answer{}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		s.Logf("half an answer: %v", err)
	}
	return enginetest.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
}

// impostor makes a new actor on p, calls change() with it and serves it. It returns the answer to
// the actor's signed Like, and the actor.
func (s *siege) impostor(name string, private crypto.Signer, change func(a *peertest.Actor)) (enginetest.Answer, *peertest.Actor) {
	s.Helper()
	a := s.p.Actor("/users/" + strings.ToLower(s.row.id) + "-" + name)
	if private != nil {
		a.Keys.RSA.Private = private
	}
	change(a)
	a.Show()
	return s.forge(peertest.Forgery{Key: a.Keys.RSA, Body: string(s.like(a, "like").JSON())}), a
}

// forget sets the time of an actor's last fetch to an hour ago, and restarts the engine.
func (s *siege) forget(a *peertest.Actor) {
	s.Helper()
	if _, err := s.home.SQL(s, "lightweb").ExecContext(s.Context(), `UPDATE actors SET fetched_at = now() - interval '1 hour' WHERE uri = $1`, string(a.ID)); err != nil {
		s.Fatal(err)
	}
	s.home.Stop(s)
	s.home.Start(s)
}

func publicPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// rsaPEM returns a public key in PEM. It encodes some keys itself, because crypto/x509 refuses
// them.
func rsaPEM(t testing.TB, n, e *big.Int) string {
	t.Helper()
	if e.IsInt64() && e.Int64() < 1<<31 {
		der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: int(e.Int64())})
		if err != nil {
			t.Fatal(err)
		}
		return publicPEM("PUBLIC KEY", der)
	}
	integer := func(i *big.Int) []byte {
		b := append([]byte{0}, i.Bytes()...)
		return append([]byte{0x02, 0x82, byte(len(b) >> 8), byte(len(b))}, b...)
	}
	both := append(integer(n), integer(e)...)
	return publicPEM("RSA PUBLIC KEY", append([]byte{0x30, 0x82, byte(len(both) >> 8), byte(len(both))}, both...))
}

func setPEM(text string) func(*peertest.Actor) {
	return func(a *peertest.Actor) { a.Doc.Sub("publicKey")["publicKeyPem"] = text }
}

// proven returns a document with a proof that is made with the key k.
func (s *siege) proven(d vocab.Doc, k signature.Key) vocab.Doc {
	s.Helper()
	d = with(d, "@context", vocab.ActivityContext())
	d, err := proof.Sign(d, vocab.ID(k.ID), k.Private, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// with returns a copy of d in which one property has another value.
func with(d vocab.Doc, name string, v any) vocab.Doc {
	d = maps.Clone(d)
	d[name] = v
	return d
}

var signatureAttacks = []attack{
	{id: "SIG-01", sends: "an activity without a signature", happens: "401; nothing is fetched", play: func(s *siege) {
		for _, inbox := range []string{s.alice.ID + "/inbox", s.home.URL + "/inbox"} {
			s.unauthorized(s.forge(peertest.Forgery{URL: inbox, After: func(r *http.Request) { r.Header.Del("Signature") }}))
		}
	}},
	{id: "SIG-02", sends: "mallory's signature on an activity of carol's, to both inboxes", happens: "401 before any handler runs: what is not the actor's own is at most asked for at its origin, which does not have it", asks: 4,
		play: func(s *siege) {
			for _, inbox := range []string{s.alice.ID + "/inbox", s.home.URL + "/inbox"} {
				for _, d := range dialects {
					s.unauthorized(s.forge(peertest.Forgery{URL: inbox, Dialect: d, Body: string(s.create(s.carol, "said").JSON())}))
				}
			}
		}},
	{id: "SIG-03", sends: "a key on mallory's server that says its owner is carol, or somebody of carol's server who does not exist", happens: "401: a key counts only when the owner's own document lists it", asks: 8,
		play: func(s *siege) {
			for n, owner := range []string{string(s.carol.ID), s.q.Origin + "/users/nobody"} {
				for _, d := range dialects {
					path := fmt.Sprintf("/keys/%d-%v", n, d)
					key := vocab.Doc{"@context": vocab.ActorContext(), "id": s.p.Origin + path, "type": "Key", "owner": owner, "controller": owner,
						"publicKeyPem": s.mallory.Doc.Sub("publicKey")["publicKeyPem"]}
					s.p.Serve(path, key.JSON())
					body := vocab.Doc{"id": owner + "/sig-03", "type": "Like", "actor": owner, "object": s.note}
					s.unauthorized(s.forge(peertest.Forgery{Dialect: d, Body: string(body.JSON()), Params: keyed(d, s.p.Origin+path)}))
				}
			}
		}},
	{id: "SIG-04", sends: "key ids that two parsers read differently: user info, %2e, backslash, a second host", happens: "401", asks: 12, play: func(s *siege) {
		host := strings.TrimPrefix(s.q.Origin, "http://")
		for _, keyID := range []string{string(s.carol.ID) + "#main-key?x", "http://" + host + "@" + strings.TrimPrefix(s.p.Origin, "http://") + "/users/mallory#main-key",
			"http://" + host + ".127.0.0.2.example/users/carol#main-key", "http://127.0.0.3%2e:80/users/carol#main-key", `http://127.0.0.2\@` + host + "/users/carol#main-key",
			s.p.Origin + "/../" + host + "/users/carol#main-key"} {
			for _, d := range dialects {
				s.answered(s.forge(peertest.Forgery{Dialect: d, Body: string(s.like(s.carol, "like").JSON()), Params: keyed(d, strings.ReplaceAll(keyID, `\`, `\\`))}), 401, 403)
			}
		}
	}},
	{id: "SIG-05", sends: "a key document whose id is not the one that was asked for", happens: "401; it is not kept under the address asked for", asks: 3, play: func(s *siege) {
		key := vocab.Doc{"@context": vocab.ActorContext(), "id": s.p.Origin + "/keys/other", "type": "Key", "owner": string(s.mallory.ID), "publicKeyPem": s.mallory.Doc.Sub("publicKey")["publicKeyPem"]}
		s.p.Serve("/keys/sig-05", key.JSON())
		s.unauthorized(s.forge(peertest.Forgery{Params: keyed(signature.Cavage, s.p.Origin+"/keys/sig-05")}))
	}},
	{id: "SIG-06", sends: "a signature that does not cover the digest, then another body", happens: "401 with either body", play: func(s *siege) {
		other := string(s.like(s.mallory, "other").JSON())
		for _, d := range dialects {
			cover := map[signature.Dialect]string{signature.Cavage: "(request-target) host date", signature.RFC9421: `"@method" "@target-uri"`}[d]
			s.unauthorized(s.forge(peertest.Forgery{Dialect: d, Cover: cover}))
			s.unauthorized(s.forge(peertest.Forgery{Dialect: d, Cover: cover, Sent: other}))
			s.unauthorized(s.forge(peertest.Forgery{Dialect: d, Sent: other}))
		}
	}},
	{id: "SIG-07", sends: "a digest that is covered but missing, by MD5, SHA-1 or an unknown algorithm alone, or SHA-256 twice with different values", happens: "401", play: func(s *siege) {
		for _, digest := range []string{"", "MD5=1B2M2Y8AsgTpgAmY7PhCfg==", "SHA=2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "WHIRLPOOL=AAAA",
			"SHA-256=" + base64.StdEncoding.EncodeToString(make([]byte, 32)) + ",SHA-256=" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32))} {
			s.unauthorized(s.forge(peertest.Forgery{Before: func(r *http.Request) {
				r.Header.Del("Digest")
				if digest != "" {
					r.Header.Set("Digest", digest)
				}
			}}))
		}
	}},
	{id: "SIG-08", sends: "a body with a Content-Encoding", happens: "415: the digest is over the bytes as they come", play: func(s *siege) {
		s.answered(s.forge(peertest.Forgery{After: func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }}), http.StatusUnsupportedMediaType)
	}},
	{id: "SIG-09", sends: "a request without a covered target, replayed to another inbox", happens: "401", play: func(s *siege) {
		s.unauthorized(s.forge(peertest.Forgery{Cover: "host date digest", URL: s.bob.ID + "/inbox"}))
		s.unauthorized(s.forge(peertest.Forgery{Dialect: signature.RFC9421, Cover: `"content-digest" "date"`, URL: s.home.URL + "/inbox"}))
		for _, d := range dialects {
			to := s.home.URL + "/inbox"
			s.unauthorized(s.forge(peertest.Forgery{Dialect: d, After: func(r *http.Request) { r.URL.Path = strings.TrimPrefix(to, s.home.URL) }}))
		}
	}},
	{id: "SIG-10", sends: "a request that was signed for another server, as every server can that was sent something", happens: "401: the host must be ours and covered", play: func(s *siege) {
		for _, d := range dialects {
			s.answered(s.forge(peertest.Forgery{Dialect: d, Before: func(r *http.Request) { r.Host = "other.example" }}), 401, 421)
			s.unauthorized(s.forge(peertest.Forgery{Dialect: d, Before: func(r *http.Request) { r.Host = "other.example" },
				After: func(r *http.Request) { r.Host = strings.TrimPrefix(s.home.URL, "http://") }}))
		}
		s.unauthorized(s.forge(peertest.Forgery{Cover: "(request-target) date digest"}))
	}},
	{id: "SIG-11", sends: "one signed request 1,000 times", happens: "202 each time, and one effect: ids are remembered for good", changes: true, play: func(s *siege) {
		like := s.create(s.mallory, "like")
		f := peertest.Forgery{URL: s.alice.ID + "/inbox", Body: string(like.JSON()), Key: s.mallory.Keys.RSA, Dialect: signature.RFC9421}
		r := f.Request(s)
		s.accepted(s.send(r))
		once := s.state()
		for range 999 {
			again := r.Clone(s.Context())
			again.Body, _ = r.GetBody()
			s.accepted(s.send(again))
		}
		if after := s.state(); after != once {
			s.Errorf("a replay left traces:\n%s", difference(once, after))
		}
	}},
	{id: "SIG-12", sends: "an old Like and its Undo again, out of order, after the window", happens: "401 by their age; within it their ids are known", changes: true, play: func(s *siege) {
		like := s.like(s.mallory, "like")
		undo := vocab.Doc{"id": s.id(s.mallory, "undo"), "type": "Undo", "actor": string(s.mallory.ID), "object": like}
		signed := time.Now()
		replay := func(doc vocab.Doc) { // every request with doc has the same signature
			s.accepted(s.forge(peertest.Forgery{Body: string(doc.JSON()), At: signed}))
		}
		for _, doc := range []vocab.Doc{like, undo} {
			replay(doc)
		}
		once := s.state()
		for _, doc := range []vocab.Doc{like, undo, like} {
			s.unauthorized(s.forge(peertest.Forgery{Body: string(doc.JSON()), At: time.Now().Add(-2 * time.Hour)}))
			replay(doc)
		}
		if after := s.state(); after != once {
			s.Errorf("a replay left traces:\n%s", difference(once, after))
		}
	}},
	{id: "SIG-13", sends: "a broken Signature-Input beside a draft-cavage signature that holds", happens: "401: a request is judged by one dialect", play: func(s *siege) {
		for _, input := range []string{"sig1=", `sig1=("@method");created=1`, "sig1=();keyid=\"\"", "nonsense("} {
			s.answered(s.forge(peertest.Forgery{After: func(r *http.Request) { r.Header.Set("Signature-Input", input) }}), 400, 401)
		}
	}},
	{id: "SIG-14", sends: "a Date two hours in the past or the future, missing, unreadable, twice, or in the year 99999", happens: "401 each", play: func(s *siege) {
		for _, at := range []time.Time{time.Now().Add(-2 * time.Hour), time.Now().Add(2 * time.Hour)} {
			for _, d := range dialects {
				s.unauthorized(s.forge(peertest.Forgery{Dialect: d, At: at}))
			}
		}
		now := time.Now().UTC().Format(http.TimeFormat)
		for _, lines := range [][]string{nil, {"foo"}, {now, now}, {"Mon, 01 Jan 99999 00:00:00 GMT"}, {""}} {
			s.unauthorized(s.forge(peertest.Forgery{Before: func(r *http.Request) { r.Header["Date"] = lines }}))
		}
	}},
	{id: "SIG-15", sends: "created and expires far ahead, the wrong way round, negative, 2^63, a float, or with rsa-sha256", happens: "401, and no panic", play: func(s *siege) {
		now := time.Now().Unix()
		for _, times := range []string{fmt.Sprint(";created=", now+7200), fmt.Sprintf(";created=%d;expires=%d", now, now-10), ";created=-5", ";created=9223372036854775808",
			fmt.Sprintf(";created=%d.5", now), ";created=\"x\"", ""} {
			s.answered(s.forge(peertest.Forgery{Dialect: signature.RFC9421, Params: times + `;keyid="` + s.mallory.Keys.RSA.ID + `"`}), 400, 401)
		}
		for _, algorithm := range []string{"hs2019", "rsa-sha256"} {
			for _, times := range []string{fmt.Sprint("created=", now+7200), fmt.Sprintf("created=%d,expires=%d", now, now-10), "created=-5", "created=9223372036854775808", fmt.Sprintf("created=%d.5", now)} {
				s.unauthorized(s.forge(peertest.Forgery{Cover: "(request-target) (created) host digest",
					Params: `keyId="` + s.mallory.Keys.RSA.ID + `",algorithm="` + algorithm + `",` + times}))
			}
		}
		s.unauthorized(s.forge(peertest.Forgery{Cover: "(request-target) (created) host digest", Params: fmt.Sprintf(`keyId="%s",algorithm="rsa-sha256",created=%d`, s.mallory.Keys.RSA.ID, now)}))
	}},
	{id: "SIG-16", sends: "hmac-sha256 with the public key as its secret, none, rsa-sha1, algorithms that do not fit the key", happens: "401: the type of the key decides", play: func(s *siege) {
		for _, algorithm := range []string{"hmac-sha256", "none", "rsa-sha1", "ed25519", "ecdsa-sha256", ""} {
			s.answered(s.forge(peertest.Forgery{Params: `keyId="` + s.mallory.Keys.RSA.ID + `",algorithm="` + algorithm + `"`, After: func(r *http.Request) {
				mac := hmac.New(sha256.New, []byte(s.mallory.Doc.Sub("publicKey").Text("publicKeyPem")))
				fmt.Fprintf(mac, "(request-target): post %s\nhost: %s\ndate: %s\ndigest: %s", r.URL.RequestURI(), r.Host, r.Header.Get("Date"), r.Header.Get("Digest"))
				head, _, _ := strings.Cut(r.Header.Get("Signature"), `signature="`)
				r.Header.Set("Signature", head+`signature="`+base64.StdEncoding.EncodeToString(mac.Sum(nil))+`"`)
			}}), 400, 401)
		}
		for _, algorithm := range []string{"ed25519", "rsa-pss-sha512", "hmac-sha256", "ecdsa-p256-sha256"} {
			s.unauthorized(s.forge(peertest.Forgery{Dialect: signature.RFC9421, Params: keyed(signature.RFC9421, s.mallory.Keys.RSA.ID) + `;alg="` + algorithm + `"`}))
		}
		s.unauthorized(s.forge(peertest.Forgery{After: func(r *http.Request) {
			text := fmt.Sprintf("(request-target): post %s\nhost: %s\ndate: %s\ndigest: %s", r.URL.RequestURI(), r.Host, r.Header.Get("Date"), r.Header.Get("Digest"))
			digest := sha1.Sum([]byte(text))
			seal, err := s.mallory.Keys.RSA.Private.Sign(rand.Reader, digest[:], crypto.SHA1)
			if err != nil {
				s.Fatal(err)
			}
			head, _, _ := strings.Cut(r.Header.Get("Signature"), `signature="`)
			r.Header.Set("Signature", head+`signature="`+base64.StdEncoding.EncodeToString(seal)+`"`)
		}}))
	}},
	{id: "SIG-17", sends: "RSA keys of 512 and 16,384 bits, with e of 1, 3 or 2^4095, a private key as PEM, a PEM of 5 MB", happens: "401: refused by their bounds before any arithmetic", asks: 24, play: func(s *siege) {
		good := s.mallory.Keys.RSA.Private.Public().(*rsa.PublicKey)
		one := big.NewInt(1)
		for name, text := range map[string]string{
			"n512":     rsaPEM(s, new(big.Int).SetBit(new(big.Int).Set(one), 511, 1), big.NewInt(65537)),
			"n16384":   rsaPEM(s, new(big.Int).SetBit(new(big.Int).Set(one), 16383, 1), big.NewInt(65537)),
			"e1":       rsaPEM(s, good.N, one),
			"e3":       rsaPEM(s, good.N, big.NewInt(3)),
			"e2-4095":  rsaPEM(s, good.N, new(big.Int).SetBit(new(big.Int).Set(one), 4095, 1)),
			"private":  publicPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(s.mallory.Keys.RSA.Private.(*rsa.PrivateKey))),
			"megabyte": publicPEM("PUBLIC KEY", bytes.Repeat([]byte{0x30}, 700_000)),
			"empty":    "",
		} {
			answer, _ := s.impostor(name, s.mallory.Keys.RSA.Private, setPEM(text))
			s.unauthorized(answer)
		}
	}},
	{id: "SIG-18", sends: "Ed25519 keys of small order, a signature with a large S, a Multikey of another codec or in base64url", happens: "401", asks: 24, play: func(s *siege) {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			s.Fatal(err)
		}
		small := make(ed25519.PublicKey, 32)
		small[0] = 1 // makes the key the neutral element of the curve
		multikey := func(text string) func(*peertest.Actor) {
			return func(a *peertest.Actor) {
				a.Keys.RSA.ID = string(a.ID) + "#ed25519-key"
				a.Doc["assertionMethod"] = []any{vocab.Doc{"id": a.Keys.RSA.ID, "type": "Multikey", "controller": string(a.ID), "publicKeyMultibase": text}}
			}
		}
		honest := signature.MarshalMultikey(public)
		for name, text := range map[string]string{"small": signature.MarshalMultikey(small), "base64url": "u" + base64.RawURLEncoding.EncodeToString(append([]byte{0xed, 1}, public...)),
			"codec": "z6Ls" + honest[4:], "bare": honest[1:], "long": honest + strings.Repeat("1", 100_000)} {
			answer, _ := s.impostor(name, private, multikey(text))
			s.unauthorized(answer)
		}
		answer, a := s.impostor("large-s", private, func(a *peertest.Actor) { multikey("z")(a) })
		s.unauthorized(answer)
		multikey(honest)(a)
		a.Show()
		order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
		s.unauthorized(s.forge(peertest.Forgery{Key: a.Keys.RSA, Dialect: signature.RFC9421, Body: string(s.like(a, "like").JSON()), After: func(r *http.Request) {
			seal, err := base64.StdEncoding.DecodeString(strings.Trim(strings.TrimPrefix(r.Header.Get("Signature"), "sig1="), ":"))
			if err != nil {
				s.Fatal(err)
			}
			large := make([]byte, 32)
			for n := range 32 {
				large[31-n] = seal[32+n]
			}
			large = new(big.Int).Add(new(big.Int).SetBytes(large), order).FillBytes(make([]byte, 33))[1:]
			for n := range 32 {
				seal[32+n] = large[31-n]
			}
			r.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(seal)+":")
		}}))
	}},
	{id: "SIG-19", sends: "Signature headers of 100 kB, with 10,000 parameters, nested quotes, or the key id twice", happens: "400, 401 or 431, in linear time", play: func(s *siege) {
		good := `keyId="` + s.mallory.Keys.RSA.ID + `",algorithm="rsa-sha256"`
		for _, header := range []string{strings.Repeat("a", 100_000), strings.Repeat(`a="b",`, 4_000) + good, `keyId="` + strings.Repeat(`\"`, 5_000), good + "," + good,
			strings.Repeat(`"`, 20_000), strings.Repeat("=,", 10_000), `keyId="` + s.mallory.Keys.RSA.ID} {
			a := s.forge(peertest.Forgery{After: func(r *http.Request) { r.Header.Set("Signature", header) }})
			if a.Status != http.StatusRequestHeaderFieldsTooLarge {
				s.answered(a, 400, 401)
			}
		}
		a := s.raw("POST /inbox HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.home.URL, "http://") + "\r\nSignature: a\r\n b\rc\r\nContent-Length: 2\r\n\r\n{}")
		if a.Status != 400 && a.Status != 401 && a.Status != 415 {
			s.Errorf("a folded header was answered %d", a.Status)
		}
	}},
	{id: "SIG-20", sends: "an RFC 9421 signature that does not cover Content-Digest, with another body and its digest", happens: "401", play: func(s *siege) {
		other := string(s.like(s.mallory, "other").JSON())
		s.unauthorized(s.forge(peertest.Forgery{Dialect: signature.RFC9421, Cover: `"@method" "@target-uri"`, Sent: other, After: func(r *http.Request) {
			d := sha256.Sum256([]byte(other))
			r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(d[:])+":")
		}}))
	}},
	{id: "SIG-21", sends: "RFC 9421 signatures that cover @path alone, @status, parameters, components twice or of another request", happens: "400 or 401", play: func(s *siege) {
		for _, cover := range []string{`"@path"`, `"@method" "@target-uri" "content-digest" "@status"`, `"@method" "@target-uri" "content-digest" "@query-param";name="a"`,
			`"@method" "@target-uri" "content-digest" "@method"`, `"@method";req "@target-uri" "content-digest"`, `"@method" "@target-uri";sf "content-digest"`, "", `"@method" "@target-uri" "content-digest" "@unknown"`} {
			if cover == "" {
				cover = " "
			}
			s.answered(s.forge(peertest.Forgery{Dialect: signature.RFC9421, Cover: cover}), 400, 401)
		}
	}},
	{id: "SIG-22", sends: "200 signatures in one request, each of a key on another server", happens: "400 or 401, and none of them is asked", play: func(s *siege) {
		s.answered(s.forge(peertest.Forgery{Dialect: signature.RFC9421, After: func(r *http.Request) {
			var inputs, seals []string
			for n := range 200 {
				inputs = append(inputs, fmt.Sprintf(`s%d=("@method" "@target-uri" "content-digest");created=%d;keyid="http://127.0.0.%d/k#k"`, n, time.Now().Unix(), n+4))
				seals = append(seals, fmt.Sprintf("s%d=:AAAA:", n))
			}
			r.Header.Set("Signature-Input", strings.Join(inputs, ", "))
			r.Header.Set("Signature", strings.Join(seals, ", "))
		}}), 400, 401, 431)
	}},
	{id: "SIG-23", sends: "Signature and Signature-Input under different labels", happens: "401", play: func(s *siege) {
		s.unauthorized(s.forge(peertest.Forgery{Dialect: signature.RFC9421, After: func(r *http.Request) {
			r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), "sig1", "sig2", 1))
		}}))
	}},
	{id: "SIG-24", sends: "forged X-Forwarded-Host and X-Forwarded-Proto that would make the signed address fit", happens: "401: they change nothing", play: func(s *siege) {
		for _, d := range dialects {
			s.answered(s.forge(peertest.Forgery{Dialect: d, Before: func(r *http.Request) { r.Host = "other.example" }, After: func(r *http.Request) {
				r.Header.Set("X-Forwarded-Host", strings.TrimPrefix(s.home.URL, "http://"))
				r.Header.Set("X-Forwarded-Proto", "http")
				r.Header.Set("Forwarded", "host="+strings.TrimPrefix(s.home.URL, "http://"))
			}}), 401, 421)
		}
	}},
	{id: "SIG-25", sends: "a signature by a key that its owner has replaced", happens: "401 once the new key is known", asks: 3, changes: true, play: func(s *siege) {
		dave := s.q.Actor("/users/dave")
		s.accepted(s.post(dave, s.alice.ID+"/inbox", s.like(dave, "before")))
		s.forget(dave)
		fresh := s.q.Actor("/users/dave")
		s.accepted(s.post(fresh, s.alice.ID+"/inbox", s.like(fresh, "after")))
		once := s.state()
		s.unauthorized(s.forge(peertest.Forgery{Key: dave.Keys.RSA, Body: string(s.like(dave, "again").JSON())}))
		if after := s.state(); after != once {
			s.Errorf("the old key was believed:\n%s", difference(once, after))
		}
	}},
	{id: "SIG-26", sends: "an Update of an actor with a new key, signed by the stolen old one, while the actor's own document has the old", happens: "202, and the document at the origin is asked: the new key is not believed", asks: 3, changes: true, play: func(s *siege) {
		stolen := s.q.Actor("/users/erin")
		s.accepted(s.post(stolen, s.alice.ID+"/inbox", s.like(stolen, "before")))
		s.forget(stolen)
		claimed := s.p.Actor("/users/thief").Keys.RSA
		doc := vocab.Doc{}
		if err := json.Unmarshal(stolen.Doc.JSON(), &doc); err != nil {
			s.Fatal(err)
		}
		doc["publicKey"] = vocab.Doc{"id": string(stolen.ID) + "#main-key", "owner": string(stolen.ID), "publicKeyPem": signature.MarshalPublicKeyPEM(claimed.Private.Public().(*rsa.PublicKey))}
		s.answered(s.post(stolen, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(stolen, "update"), "type": "Update", "actor": string(stolen.ID), "object": doc}), 202)
		claimed.ID = string(stolen.ID) + "#main-key"
		s.unauthorized(s.forge(peertest.Forgery{Key: claimed, Body: string(s.like(stolen, "stolen").JSON())}))
	}},
	{id: "SIG-27", sends: "1,000 requests with made-up keys of one server, and 1,000 bad signatures by one key", happens: "401 or 429: a server is asked as often a minute as `limits.key_fetch_rate` says, and for a key that failed not at all", play: func(s *siege) {
		far := peertest.New(s, "127.0.0.4")
		for n := range 1000 {
			nobody := fmt.Sprint(far.Origin, "/users/nobody", n)
			s.answered(s.forge(peertest.Forgery{Params: keyed(signature.Cavage, nobody+"#main-key"),
				Body: `{"id":"` + nobody + `/1","type":"Like","actor":"` + nobody + `","object":"` + s.note + `"}`}), 401, 429)
		}
		if n := len(far.Asked()); n > keyFetches+20 {
			s.Errorf("a server was asked for %d keys, want %d and 20 a minute", n, keyFetches)
		}
		for range 1000 {
			s.unauthorized(s.forge(peertest.Forgery{After: func(r *http.Request) {
				r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), `signature="`, `signature="AAAA`, 1))
			}}))
		}
	}},
	{id: "SIG-28", sends: "a key whose address answers with an endless stream, byte by byte, or redirects in a circle", happens: "401 or 503 within the time for a fetch; 3 redirects at most", asks: 8, play: func(s *siege) {
		s.p.Handle("/users/stream", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", vocab.ActivityJSON)
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte(" "), 64<<10)); err != nil {
					return
				}
			}
		})
		s.p.Handle("/users/circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/users/circle", http.StatusFound) })
		for _, name := range []string{"stream", "circle"} {
			id := s.p.Origin + "/users/" + name
			body := vocab.Doc{"id": id + "/1", "type": "Like", "actor": id, "object": s.note}
			s.answered(s.forge(peertest.Forgery{Body: string(body.JSON()), Params: keyed(signature.Cavage, id+"#main-key")}), 401, 503)
		}
	}},
	{id: "SIG-29", sends: "a key id of alice's own, or of this server's instance actor", happens: "401: a local actor never comes from outside, and its key is not fetched; 503 for one of localhost, where nobody answers", play: func(s *siege) {
		for _, keyID := range []string{s.alice.ID + "#main-key", s.home.URL + "/actor#main-key", "https://localhost/users/alice#main-key"} {
			for _, actor := range []string{s.alice.ID, string(s.mallory.ID)} {
				s.answered(s.forge(peertest.Forgery{Params: keyed(signature.Cavage, keyID), Body: `{"id":"` + actor + `/1","type":"Like","actor":"` + actor + `","object":"` + s.note + `"}`}), 401, 403, 503) // 503: no server answers at localhost
			}
		}
	}},
	{id: "SIG-30", sends: "key ids that are no addresses of the web: acct:, did:, data:, file:, gopher:, relative, 64 kB long", happens: "401", play: func(s *siege) {
		for _, keyID := range []string{"acct:mallory@127.0.0.2", "did:key:z6Mk", "data:text/plain,x", "file:///etc/passwd", "gopher://127.0.0.2/1", "/users/mallory#main-key", "#main-key", "", s.p.Origin + "/" + strings.Repeat("k", 20_000)} {
			for _, d := range dialects {
				s.answered(s.forge(peertest.Forgery{Dialect: d, Params: keyed(d, keyID)}), 400, 401, 403)
			}
		}
	}},
	{id: "SIG-31", sends: "an activity of mallory's signed by the instance actor of mallory's server", happens: "401: the actor itself signs, or its server shows the activity", asks: 2, play: func(s *siege) {
		instance := s.p.Actor("/actor")
		instance.Doc["type"] = "Application"
		instance.Show()
		s.unauthorized(s.forge(peertest.Forgery{Key: instance.Keys.RSA}))
	}},
	{id: "SIG-32", sends: "a Delete of carol signed by mallory, while carol's server answers 404", happens: "401 or dropped; only carol's own key, or 410 from her server, ends her", asks: 3, play: func(s *siege) {
		body := vocab.Doc{"id": string(s.carol.ID) + "#delete", "type": "Delete", "actor": string(s.carol.ID), "object": string(s.carol.ID), "to": []any{string(vocab.Public)}}
		s.unauthorized(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Body: string(body.JSON())}))
		gone := s.q.Origin + "/users/never-was"
		body = vocab.Doc{"id": gone + "#delete", "type": "Delete", "actor": gone, "object": gone, "to": []any{string(vocab.Public)}}
		s.answered(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Body: string(body.JSON())}), 401, 202)
	}},
	{id: "SIG-33", sends: "an activity of carol's with an RsaSignature2017, restructured by @graph, @reverse, @included or terms of its own", happens: "202 and dropped: such signatures are never looked at, and carol's server, which is asked, does not show it", asks: 6, play: func(s *siege) {
		for n, change := range []func(vocab.Doc){
			func(vocab.Doc) {},
			func(d vocab.Doc) { d["@graph"] = []any{vocab.Doc{"id": string(s.carol.ID) + "/x"}} },
			func(d vocab.Doc) { d["@reverse"] = vocab.Doc{"object": string(s.carol.ID)} },
			func(d vocab.Doc) { d["@included"] = []any{vocab.Doc{"id": string(s.carol.ID)}} },
			func(d vocab.Doc) {
				d["@context"] = []any{vocab.ContextAS, vocab.Doc{"actor": "https://example.org/x", "author": "as:actor"}}
			},
		} {
			d := s.create(s.carol, fmt.Sprint("ld", n))
			d["signature"] = vocab.Doc{"type": "RsaSignature2017", "creator": string(s.carol.ID) + "#main-key", "created": "2026-01-01T00:00:00Z", "signatureValue": base64.StdEncoding.EncodeToString(make([]byte, 256))}
			change(d)
			s.accepted(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Body: string(d.JSON())}))
		}
	}},
	{id: "SIG-34", sends: "an activity of carol's with a proof by mallory, under either's key id, with two proofs, or for another purpose; a note that carol has proven in a Create of mallory's", happens: "401: its actor's own document must list the key; 400 for what is embedded of another's", asks: 2,
		play: func(s *siege) {
			create := s.create(s.carol, "proven")
			genuine := s.proven(create, s.carol.Keys.Ed25519)
			two, other := maps.Clone(genuine), maps.Clone(genuine)
			two["proof"] = []any{genuine["proof"], genuine["proof"]}
			other["proof"] = with(genuine.Sub("proof"), "proofPurpose", "authentication")
			for _, d := range []vocab.Doc{s.proven(create, s.mallory.Keys.Ed25519), s.proven(create, signature.Key{ID: s.carol.Keys.Ed25519.ID, Private: s.mallory.Keys.Ed25519.Private}), two, other} {
				s.unauthorized(s.forge(peertest.Forgery{Body: string(d.JSON())}))
			}
			stolen := s.create(s.mallory, "stolen")
			stolen["object"] = s.proven(create.Sub("object"), s.carol.Keys.Ed25519)
			s.answered(s.forge(peertest.Forgery{Body: string(stolen.JSON())}), 400)
			stolen = s.proven(stolen, s.mallory.Keys.Ed25519)
			s.answered(s.forge(peertest.Forgery{Body: string(stolen.JSON())}), 400)
		}},
	{id: "SIG-34b", sends: "a proof of carol's with options that were changed, added or taken away, expired, or that bind it to another place", happens: "401: every option is proven, and none makes an exception", asks: 2, play: func(s *siege) {
		genuine := s.proven(s.create(s.carol, "options"), s.carol.Keys.Ed25519)
		for name, v := range map[string]any{"created": "2026-01-01T00:00:00Z", "expires": "2020-01-01T00:00:00Z", "domain": "example.org", "challenge": "x", "nonce": "x", "extra": []any{}, "@context": nil,
			"verificationMethod": s.carol.Keys.RSA.ID, "proofValue": "z" + strings.Repeat("1", 64)} {
			d := maps.Clone(genuine)
			d["proof"] = with(genuine.Sub("proof"), name, v)
			s.unauthorized(s.forge(peertest.Forgery{Body: string(d.JSON())}))
		}
	}},
	{id: "SIG-35", sends: "a document that carol has proven, with names twice, lone surrogates, letters composed in another way, numbers beyond what a double holds", happens: "400 or 401: what is proven is what is read, once", asks: 2, play: func(s *siege) {
		create := s.create(s.carol, "canonical")
		create["summary"] = "\u00fc\ufb33"
		create["startIndex"] = json.Number("9007199254740991")
		genuine := string(s.proven(create, s.carol.Keys.Ed25519).JSON())
		for _, change := range [][2]string{{`"type":"Create"`, `"type":"Create","type":"Create"`}, {"\ufb33", `\ud83d`}, {"\u00fc", "u\u0308"}, {"9007199254740991", "9007199254740993"}, {"9007199254740991", "1e999"}} {
			s.answered(s.forge(peertest.Forgery{Body: strings.Replace(genuine, change[0], change[1], 1)}), 400, 401)
		}
	}},
	{id: "SIG-36", sends: "requests that a careless server takes for its own: signed by empty headers, internal addresses, odd methods", happens: "401, 404 or 405", play: func(s *siege) {
		for _, change := range []func(*http.Request){
			func(r *http.Request) { r.Header.Set("Signature", "") },
			func(r *http.Request) { r.Header["Signature"] = []string{"", ""} },
			func(r *http.Request) { r.Header.Set("Signature", "null") },
			func(r *http.Request) {
				r.Header.Del("Signature")
				r.Header.Set("X-Forwarded-For", "127.0.0.1")
				r.Header.Set("X-Real-Ip", "::1")
			},
			func(r *http.Request) {
				r.Header.Set("Authorization", r.Header.Get("Signature"))
				r.Header.Del("Signature")
			},
			func(r *http.Request) { r.Header.Del("Signature"); r.Header.Del("Digest"); r.Header.Del("Date") },
		} {
			s.answered(s.forge(peertest.Forgery{After: change}), 400, 401)
		}
		for _, method := range []string{http.MethodPut, http.MethodPatch, "POSTED"} {
			s.answered(s.forge(peertest.Forgery{After: func(r *http.Request) { r.Method = method; r.Header.Del("Signature") }}), 404, 405)
		}
	}},
	{id: "SIG-37", sends: "bad signatures of actors that exist and that do not, to see which are known here", happens: "401 in the same words for both", asks: 2, play: func(s *siege) {
		bad := func(a vocab.ID) enginetest.Answer {
			return s.forge(peertest.Forgery{Params: keyed(signature.Cavage, string(a)+"#main-key"), Body: `{"id":"` + string(a) + `/1","type":"Like","actor":"` + string(a) + `","object":"` + s.note + `"}`,
				After: func(r *http.Request) {
					r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), `signature="`, `signature="AAAA`, 1))
				}})
		}
		s.unauthorized(bad(s.mallory.ID))
		s.unauthorized(bad(s.carol.ID))
	}},
	{id: "SIG-38", sends: "a build for development that makes signatures which can be replayed", never: "there is one build; nothing in it changes how requests are signed"},
}
