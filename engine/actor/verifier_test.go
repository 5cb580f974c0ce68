package actor

import (
	"context"
	"crypto"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func mainKey(p *peer, name string, private crypto.Signer) signature.Key {
	return signature.Key{ID: p.URL + "/users/" + name + "#main-key", Private: private}
}

func TestSignerIsWhoSigned(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	for _, d := range []signature.Dialect{signature.RFC9421, signature.Cavage} {
		for _, want := range []vocab.ID{p.id("/users/bob"), "", p.id("/users/carol")} { // carol did not sign
			a, err := n.signer(t, mainKey(p, "bob", private), d, want)
			if err != nil || a.ID != p.id("/users/bob") {
				t.Errorf("%s, want %q: Signer = %v, %v", d, want, a, err)
			}
		}
	}
	if _, err := n.verifier.Signer(context.Background(), nil, ""); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("Signer of no claims = %v", err)
	}
	_, err := n.verifier.Claims(httptest.NewRequest(http.MethodPost, "https://us.example/inbox", strings.NewReader("")), nil)
	checkKind(t, "Claims of an unsigned request", err, fault.Unauthenticated)
}

func TestAWrongSignatureBringsOneRefresh(t *testing.T) {
	t.Parallel()
	_, wrong := theirs(t, 1)
	rsaWrong, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	if _, err := n.Resolve(context.Background(), p.id("/users/bob")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		key   signature.Key
		asked int // all fetches of the test so far
	}{
		{"SG-16 just fetched", mainKey(p, "bob", rsaWrong), 1},
		{"SG-16 a minute later", mainKey(p, "bob", rsaWrong), 2},
		{"SIG-16 an Ed25519 signature in the name of an RSA key", mainKey(p, "bob", wrong), 3},
	} {
		for range 1000 / 4 {
			_, err := n.signer(t, tt.key, signature.RFC9421, p.id("/users/bob"))
			if fault.KindOf(err) != fault.Unauthenticated {
				t.Fatalf("%s: Signer = %v", tt.name, err)
			}
		}
		if got := p.asked("/users/bob"); got != tt.asked {
			t.Errorf("%s: asked %d times, want %d", tt.name, got, tt.asked)
		}
		n.clock.pass(refreshEvery)
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	old, _ := theirs(t, 0)
	next, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	is := func(what string, k signature.Key, want fault.Kind, asked int) {
		t.Helper()
		_, err := n.signer(t, k, signature.Cavage, p.id("/users/bob"))
		checkKind(t, what, err, want)
		if got := p.asked("/users/bob"); got != asked {
			t.Errorf("%s: asked %d times, want %d", what, got, asked)
		}
	}
	is("the old key", mainKey(p, "bob", old), 0, 1)
	p.show("/users/bob", p.person(t, "bob", 1))
	n.clock.pass(refreshEvery)
	is("SIG-25 the old key, while nobody told us", mainKey(p, "bob", old), 0, 1)
	is("SG-20 the new key under the same id", mainKey(p, "bob", next), 0, 2)
	is("SIG-25 the old key", mainKey(p, "bob", old), fault.Unauthenticated, 2)

	bob := p.person(t, "bob", 0)
	id := p.URL + "/users/bob#key-3"
	p.show("/users/bob", with(bob, vocab.Doc{"publicKey": vocab.Doc{"id": id, "owner": bob["id"], "publicKeyPem": signature.MarshalPublicKeyPEM(&old.PublicKey)}}))
	n.clock.pass(refreshEvery)
	is("SG-20 a new key under a new id", signature.Key{ID: id, Private: old}, 0, 3)
	is("SIG-25 the id that is listed no more", mainKey(p, "bob", next), fault.Unauthenticated, 3)
	n = n.restarted(t)
	is("SIG-25 nor after a restart", mainKey(p, "bob", next), fault.Unauthenticated, 3)
}

func TestAKeyOfItsOwnAddressRotates(t *testing.T) {
	t.Parallel()
	old, _ := theirs(t, 0)
	next, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	serve := func(set int) {
		k, _ := theirs(t, set)
		p.show("/users/bob", with(p.person(t, "bob", 0), vocab.Doc{"publicKey": p.URL + "/keys/1"}))
		p.show("/keys/1", vocab.Doc{"id": p.URL + "/keys/1", "type": "Key", "owner": p.URL + "/users/bob", "publicKeyPem": signature.MarshalPublicKeyPEM(&k.PublicKey)})
	}
	is := func(what string, private crypto.Signer, want fault.Kind) {
		t.Helper()
		_, err := n.signer(t, signature.Key{ID: p.URL + "/keys/1", Private: private}, signature.Cavage, p.id("/users/bob"))
		checkKind(t, what, err, want)
	}
	serve(0)
	is("the old key", old, 0)
	serve(1)
	is("the new key, too soon", next, fault.Unauthenticated)
	n.clock.pass(refreshEvery)
	is("the new key", next, 0)
	is("the old key afterwards", old, fault.Unauthenticated)
	n.clock.pass(testTTL)
	is("the new key after a day", next, 0)
}

func TestSignersThatCannotBeFound(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	for _, tt := range []struct {
		name   string
		status int
		want   fault.Kind
	}{
		{"SG-18 gone", http.StatusGone, fault.Gone},
		{"SG-18 SIG-32 not there", http.StatusNotFound, fault.Unauthenticated},
		{"not shown", http.StatusForbidden, fault.Unauthenticated},
		{"down", http.StatusServiceUnavailable, fault.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
			p.status("/users/bob", tt.status)
			for range 2 {
				_, err := n.signer(t, mainKey(p, "bob", private), signature.Cavage, p.id("/users/bob"))
				checkKind(t, "Signer", err, tt.want)
			}
		})
	}
	t.Run("blocked", func(t *testing.T) {
		n, p := newNode(t, settings{store: forgetful{}}), newPeer(t)
		n.policy.Blocked = []string{"127.0.0.1"}
		_, err := n.signer(t, mainKey(p, "bob", private), signature.Cavage, p.id("/users/bob"))
		checkKind(t, "Signer", err, fault.Forbidden)
		if p.all() != 0 {
			t.Error("a blocked host was asked for its key")
		}
	})
	t.Run("SIG-30 NET-00 a key where nobody may ask", func(t *testing.T) {
		n := newNode(t, settings{store: forgetful{}})
		for _, id := range []string{"https://10.0.0.1/actor#k", "https://169.254.169.254/latest#k", "https://[::1]/actor#k", "https://127.1/actor#k"} {
			_, err := n.signer(t, signature.Key{ID: id, Private: private}, signature.Cavage, "")
			checkKind(t, "Signer "+id, err, fault.Unauthenticated)
		}
	})
	t.Run("SIG-30 no https", func(t *testing.T) {
		n := newNode(t, settings{store: forgetful{}})
		for _, id := range []string{"acct:bob@them.example", "did:key:z6Mk", "data:text/plain,a", "file:///etc/passwd", "gopher://them.example/k", "/actor#k", "https://them.example/" + strings.Repeat("a", 64<<10)} {
			r, body := n.signed(t, signature.Key{ID: "https://them.example/k", Private: private}, signature.Cavage)
			r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), "https://them.example/k", id, 1))
			claims, err := n.verifier.Claims(r, body)
			if err == nil {
				_, err = n.verifier.Signer(context.Background(), claims, "")
			}
			checkKind(t, "Signer "+id[:min(len(id), 40)], err, fault.Unauthenticated)
		}
	})
}

func TestOurOwnKeysFromOutside(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	n := newNode(t, settings{origin: p.URL, store: forgetful{}})
	alice, err := n.keys.Keys(username(t, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := n.signer(t, alice.RSA, signature.RFC9421, n.local.ID(username(t, "alice")))
	if err != nil || a.PreferredUsername != "alice" {
		t.Errorf("Signer of a request by alice = %v, %v", a, err)
	}
	stranger, _ := theirs(t, 0) // alice has the keys of set 1; the instance has set 0
	for _, id := range []string{"/users/alice#main-key", "/users/alice#none", "/users/bob#main-key", "/keys/1"} {
		_, err := n.signer(t, signature.Key{ID: p.URL + id, Private: stranger}, signature.RFC9421, "")
		checkKind(t, "SIG-29 Signer "+id, err, fault.Unauthenticated)
	}
	a, err = n.signer(t, signature.Key{ID: p.URL + "/actor#main-key", Private: stranger}, signature.RFC9421, n.local.ID(username(t, "alice")))
	if err != nil || a.ID != n.local.InstanceID() {
		t.Errorf("SIG-31 Signer of a request by the instance = %v, %v", a, err)
	}
	if p.all() != 0 {
		t.Errorf("we asked ourselves %d times", p.all())
	}
}

// SIG-10: an actor signed a request for another server. That server may forward the request to us.
// Its headers do not introduce the actor to us.
func TestHeadersThatWereSignedForAnotherServerIntroduceNobody(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	for _, d := range []signature.Dialect{signature.RFC9421, signature.Cavage} {
		r := httptest.NewRequest(http.MethodGet, "https://evil.example/users/alice/conversations/1/log", nil)
		if err := signature.Sign(r, nil, mainKey(p, "bob", private), d, n.clock.now()); err != nil {
			t.Fatal(err)
		}
		_, err := n.verifier.Introduce(t.Context(), r)
		checkKind(t, string(d)+": Introduce", err, fault.Unauthenticated)
		if _, err := n.Resolve(t.Context(), p.id("/users/bob")); err != nil {
			t.Fatal(err)
		}
		_, err = n.verifier.Recognize(t.Context(), r)
		checkKind(t, string(d)+": Recognize", err, fault.Unauthenticated)
	}
}

// SIG-22: for a request that may be unsigned, this server fetches keys from one other server only.
func TestARequestAsksOneServerForKeys(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	n := newNode(t, settings{})
	peers := []*peer{newPeer(t), newPeer(t), newPeer(t)}
	var claims []signature.Claim
	for _, p := range peers {
		for _, name := range []string{"bob", "carol"} {
			r, body := n.signed(t, mainKey(p, name, private), signature.RFC9421)
			c, err := n.verifier.Claims(r, body)
			if err != nil {
				t.Fatal(err)
			}
			claims = append(claims, c...)
		}
	}
	peers[0].show("/users/carol", peers[0].person(t, "carol", 0))
	if a, err := n.verifier.Signer(t.Context(), claims, ""); err != nil || a.PreferredUsername != "carol" {
		t.Errorf("Signer = %v, %v, want the second key of the first server", a, err)
	}
	peers[0].show("/users/carol", nil)
	_, err := n.verifier.Signer(t.Context(), claims[2:], "")
	checkKind(t, "unknown keys", err, fault.Unauthenticated)
	if asked := peers[2].all(); asked != 0 {
		t.Errorf("a third server was asked %d times", asked)
	}
}

func TestOneGoodSignatureIsEnough(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	p.show("/users/carol", p.person(t, "carol", 0))
	good, body := n.signed(t, mainKey(p, "bob", private), signature.RFC9421)
	others, _ := n.signed(t, mainKey(p, "carol", private), signature.RFC9421)
	bad, _ := n.signed(t, mainKey(p, "nobody", private), signature.RFC9421)
	var claims []signature.Claim
	for _, r := range []*http.Request{bad, others, good} {
		c, err := n.verifier.Claims(r, body)
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, c...)
	}
	if a, err := n.verifier.Signer(context.Background(), claims, p.id("/users/bob")); err != nil || a.PreferredUsername != "bob" { // row MS-07 of docs/conformance.md
		t.Errorf("Signer = %v, %v", a, err)
	}
}

// Each of two servers verifies a request before it serves an actor. For the verification it
// fetches the other server's instance actor. The servers do not wait for each other, because each
// serves its instance actor without verification.
func TestTwoServersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	type server struct {
		*httptest.Server
		node *node
	}
	serve := func() *server {
		s := &server{}
		s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/actor" {
				d, err := s.node.local.InstanceDocument()
				if err != nil {
					t.Error(err)
				}
				activity(d)(w, r)
				return
			}
			claims, err := s.node.verifier.Claims(r, nil)
			if err == nil {
				_, err = s.node.verifier.Signer(r.Context(), claims, "")
			}
			if err != nil {
				t.Errorf("%s: %v", r.URL, err)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			a, err := s.node.local.actorAt(vocab.ID(s.URL + r.URL.Path))
			if err != nil {
				t.Error(err)
				return
			}
			w.Header().Set("Content-Type", vocab.ActivityJSON)
			_, _ = w.Write(a.Raw) // fails if the client has hung up
		}))
		t.Cleanup(s.Close)
		s.node = newNode(t, settings{origin: s.URL, store: forgetful{}})
		return s
	}
	a, b := serve(), serve()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second) // shorter than the timeout of one request
	defer cancel()
	var wg sync.WaitGroup
	for _, pair := range [][2]*server{{a, b}, {b, a}} {
		wg.Go(func() {
			if _, err := pair[0].node.Resolve(ctx, vocab.ID(pair[1].URL+"/users/alice")); err != nil {
				t.Errorf("Resolve = %v", err)
			}
		})
	}
	wg.Wait()
}

func TestRecognizingAsksNobody(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	_, wrong := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	recognize := func(k signature.Key) (*vocab.Actor, error) {
		t.Helper()
		r, _ := n.signed(t, k, signature.RFC9421)
		return n.verifier.Recognize(t.Context(), r)
	}
	_, err := recognize(mainKey(p, "bob", private))
	checkKind(t, "an actor that nobody knows yet", err, fault.Unauthenticated)
	if got := p.asked("/users/bob"); got != 0 {
		t.Errorf("asked %d times for a key that nobody knows", got)
	}
	if _, err := n.Resolve(t.Context(), p.id("/users/bob")); err != nil {
		t.Fatal(err)
	}
	n.clock.pass(100 * time.Hour)
	if a, err := recognize(mainKey(p, "bob", private)); err != nil || a.ID != p.id("/users/bob") {
		t.Errorf("Recognize = %v, %v, want bob by a copy of days ago", a, err)
	}
	_, err = recognize(mainKey(p, "bob", wrong))
	checkKind(t, "another key under its id", err, fault.Unauthenticated)
	if got := p.asked("/users/bob"); got != 1 {
		t.Errorf("asked %d times, want the first alone", got)
	}
}
