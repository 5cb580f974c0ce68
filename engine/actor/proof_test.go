package actor

import (
	"context"
	"crypto/ed25519"
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// provenBy returns a proof made with a key. The parameter method is the id of the key.
func (n *node) provenBy(t testing.TB, method string, key ed25519.PrivateKey) *proof.Proof {
	t.Helper()
	d, err := proof.Sign(vocab.Doc{"type": "Note"}, vocab.ID(method), key, n.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Parse(d, n.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asserting returns the document of bob with a key that verifies bob's proofs.
func (p *peer) asserting(t testing.TB, key ed25519.PrivateKey) vocab.Doc {
	id := p.URL + "/users/bob"
	return with(p.person(t, "bob", 0), vocab.Doc{"assertionMethod": vocab.Doc{"id": id + "#ed25519-key", "type": "Multikey", "controller": id,
		"publicKeyMultibase": signature.MarshalMultikey(key.Public().(ed25519.PublicKey))}})
}

func TestProver(t *testing.T) {
	t.Parallel()
	_, key := theirs(t, 0)
	rsaKey, other := theirs(t, 1)
	for _, tt := range []struct {
		name   string
		method string // the path of the key's id on the peer; empty for the id of bob's key
		key    ed25519.PrivateKey
		change func(p *peer, bob vocab.Doc) // changes the documents on the peer
		want   fault.Kind
		code   string
	}{
		{name: "FE-06 a key of the actor's"},
		{"FE-05 a key in a document of its own", "/keys/1", key, func(p *peer, bob vocab.Doc) {
			p.show("/keys/1", with(bob["assertionMethod"].(vocab.Doc), vocab.Doc{"id": p.URL + "/keys/1"}))
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": p.URL + "/keys/1"}))
		}, 0, ""},
		{"with another key", "", other, nil, fault.Unauthenticated, "proof_wrong"},
		{"SIG-34 the key of another actor", "/users/mallory#ed25519-key", key, func(p *peer, bob vocab.Doc) {
			id := p.URL + "/users/mallory"
			p.show("/users/mallory", with(bob, vocab.Doc{"id": id, "inbox": id + "/inbox", "assertionMethod": with(bob["assertionMethod"].(vocab.Doc), vocab.Doc{"id": id + "#ed25519-key", "controller": id})}))
		}, fault.Unauthenticated, "foreign_proof"},
		{"SIG-03 the controller is another", "", key, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": with(bob["assertionMethod"].(vocab.Doc), vocab.Doc{"controller": p.URL + "/users/mallory"})}))
		}, fault.Unauthenticated, "unusable_key"},
		{"SIG-34 a key that signs requests only", "", key, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": nil, "publicKey": []any{bob["publicKey"], bob["assertionMethod"]}}))
		}, fault.Unauthenticated, "unusable_key"},
		{"an RSA key", "", key, func(p *peer, bob vocab.Doc) {
			pem := vocab.Doc{"publicKeyMultibase": nil, "publicKeyPem": signature.MarshalPublicKeyPEM(&rsaKey.PublicKey)}
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": with(bob["assertionMethod"].(vocab.Doc), pem)}))
		}, fault.Unauthenticated, "unusable_key"},
		{"SIG-18 a key of small order", "", key, func(p *peer, bob vocab.Doc) {
			small := vocab.Doc{"publicKeyMultibase": signature.MarshalMultikey(make([]byte, ed25519.PublicKeySize))}
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": with(bob["assertionMethod"].(vocab.Doc), small)}))
		}, fault.Unauthenticated, "unusable_key"},
		{"a key that is listed no more", "", key, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": nil}))
		}, fault.NotFound, ""},
		{"SIG-03 a key that the actor does not list", "/keys/1", key, func(p *peer, bob vocab.Doc) {
			p.show("/keys/1", with(bob["assertionMethod"].(vocab.Doc), vocab.Doc{"id": p.URL + "/keys/1"}))
			p.show("/users/bob", bob)
		}, fault.NotFound, ""},
		{"the actor is not there", "", key, func(p *peer, _ vocab.Doc) { p.status("/users/bob", http.StatusNotFound) }, fault.NotFound, ""},
		{"the actor is gone", "", key, func(p *peer, _ vocab.Doc) { p.status("/users/bob", http.StatusGone) }, fault.NotFound, ""},
		{"the server is down", "", key, func(p *peer, _ vocab.Doc) { p.status("/users/bob", http.StatusServiceUnavailable) }, fault.Unavailable, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{}), newPeer(t)
			bob := p.asserting(t, key)
			p.show("/users/bob", bob)
			if tt.change != nil {
				tt.change(p, bob)
			}
			if tt.method == "" {
				tt.method = "/users/bob#ed25519-key"
			}
			if tt.key == nil {
				tt.key = key
			}
			a, err := n.verifier.Prover(context.Background(), n.provenBy(t, p.URL+tt.method, tt.key), p.id("/users/bob"))
			checkKind(t, "Prover", err, tt.want)
			if e := fault.Of(err); tt.code != "" && e.Code != tt.code {
				t.Errorf("refused with %q, want %q", e.Code, tt.code)
			}
			if err == nil && a.ID != p.id("/users/bob") {
				t.Errorf("Prover = %v", a)
			}
		})
	}
	t.Run("SIG-34 a key of another server, which is not asked", func(t *testing.T) {
		t.Parallel()
		n, p, q := newNode(t, settings{}), newPeer(t), newPeer(t)
		_, err := n.verifier.Prover(context.Background(), n.provenBy(t, q.URL+"/users/bob#ed25519-key", key), p.id("/users/bob"))
		checkKind(t, "Prover", err, fault.Unauthenticated)
		if p.all()+q.all() > 0 {
			t.Errorf("%d requests, want none", p.all()+q.all())
		}
	})
}

func TestKeysOfProofsRotate(t *testing.T) {
	t.Parallel()
	_, old := theirs(t, 0)
	_, next := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	is := func(what string, key ed25519.PrivateKey, want fault.Kind, asked int) {
		t.Helper()
		for range 3 {
			_, err := n.verifier.Prover(context.Background(), n.provenBy(t, p.URL+"/users/bob#ed25519-key", key), p.id("/users/bob"))
			checkKind(t, what, err, want)
		}
		if got := p.asked("/users/bob"); got != asked {
			t.Errorf("%s: asked %d times, want %d", what, got, asked)
		}
	}
	p.show("/users/bob", p.asserting(t, old))
	is("the old key", old, 0, 1)
	p.show("/users/bob", p.asserting(t, next))
	is("SG-16 the new key, too soon", next, fault.Unauthenticated, 1)
	n.clock.pass(refreshEvery)
	is("SG-20 the new key", next, 0, 2)
	is("SIG-25 the old key", old, fault.Unauthenticated, 2)
}

func TestWhatIsProvenHere(t *testing.T) {
	t.Parallel()
	n, alice := newNode(t, settings{}), username(t, "alice")
	raw, err := n.local.Prove(alice, vocab.Doc{"type": "Like"}, n.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	d, err := vocab.ParseDoc(raw)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Parse(d, n.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	if a, err := n.verifier.Prover(context.Background(), p, n.local.ID(alice)); err != nil || a.PreferredUsername != "alice" {
		t.Errorf("Prover = %v, %v", a, err)
	}
	_, err = n.verifier.Prover(context.Background(), p, n.local.InstanceID())
	checkKind(t, "as the instance's", err, fault.Unauthenticated)
	_, err = n.local.Prove(username(t, "nobody"), vocab.Doc{"type": "Like"}, n.clock.now())
	checkKind(t, "Prove without keys", err, fault.Unavailable)
}
