package actor

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/mr-tron/base58"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A text that cannot be a key is not stored in memory.
func TestATextThatIsNoKeyIsNotRemembered(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	for path, text := range map[string]vocab.Doc{
		"/keys/pem":      {"publicKeyPem": strings.Repeat("A", 100<<10)},
		"/keys/multikey": {"publicKeyMultibase": "z" + strings.Repeat("6", 100<<10)},
	} {
		p.show(path, with(text, vocab.Doc{"id": p.URL + path, "owner": p.URL + "/users/bob", "controller": p.URL + "/users/bob"}))
		if _, err := n.ByKey(t.Context(), p.id(path)); err == nil {
			t.Errorf("%s is a key", path)
		}
		if _, is := n.claims.get(p.id(path)); is {
			t.Errorf("%s is remembered", path)
		}
	}
}

// SG-14: other servers name the owner of a key in several forms. The engine reads each of them.
func TestKeysInEveryShape(t *testing.T) {
	t.Parallel()
	private, edwards := theirs(t, 0)
	public := signature.MarshalPublicKeyPEM(&private.PublicKey)
	for _, tt := range []struct {
		name    string
		key     string // the path of the key's id on the peer
		ed25519 bool
		serve   func(p *peer, bob vocab.Doc)
		asked   int // requests that the first look-up makes
	}{
		{"an actor with a fragment key", "/users/bob#main-key", false, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", bob)
		}, 1},
		{"a list of keys", "/users/bob#second", false, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"publicKey": []any{bob["publicKey"],
				vocab.Doc{"id": p.URL + "/users/bob#second", "owner": p.URL + "/users/bob", "publicKeyPem": public}}}))
		}, 1},
		{"a key of its own address, with a stub of the actor", "/users/bob/main-key", false, func(p *peer, bob vocab.Doc) {
			key := vocab.Doc{"id": p.URL + "/users/bob/main-key", "owner": p.URL + "/users/bob", "publicKeyPem": public}
			p.show("/users/bob", with(bob, vocab.Doc{"publicKey": key}))
			p.show("/users/bob/main-key", vocab.Doc{"id": bob["id"], "type": "Person", "preferredUsername": "bob", "publicKey": key})
		}, 2},
		{"the whole actor at the key's address", "/users/bob/main-key", false, func(p *peer, bob vocab.Doc) {
			bob = with(bob, vocab.Doc{"publicKey": vocab.Doc{"id": p.URL + "/users/bob/main-key", "owner": p.URL + "/users/bob", "publicKeyPem": public}})
			p.show("/users/bob", bob)
			p.show("/users/bob/main-key", bob)
		}, 2},
		{"no more than the address of a key", "/keys/1", false, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"publicKey": p.URL + "/keys/1"}))
			p.show("/keys/1", vocab.Doc{"id": p.URL + "/keys/1", "type": "CryptographicKey", "owner": p.URL + "/users/bob", "publicKeyPem": public})
		}, 2},
		{"a document of a key with its owner", "/keys/1", false, func(p *peer, bob vocab.Doc) {
			key := vocab.Doc{"id": p.URL + "/keys/1", "type": "Key", "owner": p.URL + "/users/bob", "publicKeyPem": public}
			p.show("/users/bob", with(bob, vocab.Doc{"publicKey": key}))
			p.show("/keys/1", key)
		}, 2},
		{"the actor in place of its only key", "/users/bob", false, func(p *peer, bob vocab.Doc) { p.show("/users/bob", bob) }, 1},
		{"the actor in place of its only key in PEM, beside a Multikey", "/users/bob", false, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": []any{vocab.Doc{"id": p.URL + "/users/bob#ed25519-key", "type": "Multikey",
				"controller": p.URL + "/users/bob", "publicKeyMultibase": signature.MarshalMultikey(edwards.Public().(ed25519.PublicKey))}}}))
		}, 1},
		{"a Multikey", "/users/bob#ed25519-key", true, func(p *peer, bob vocab.Doc) {
			p.show("/users/bob", with(bob, vocab.Doc{"assertionMethod": []any{vocab.Doc{"id": p.URL + "/users/bob#ed25519-key", "type": "Multikey",
				"controller": p.URL + "/users/bob", "publicKeyMultibase": signature.MarshalMultikey(edwards.Public().(ed25519.PublicKey))}}}))
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{}), newPeer(t)
			tt.serve(p, p.person(t, "bob", 0))
			key, dialect := signature.Key{ID: p.URL + tt.key, Private: private}, signature.Cavage
			if tt.ed25519 {
				key.Private, dialect = edwards, signature.RFC9421
			}
			for i, n := range []*node{n, n, n.restarted(t)} {
				if a, err := n.signer(t, key, dialect, p.id("/users/bob")); err != nil || a.ID != p.id("/users/bob") {
					t.Errorf("time %d: Signer = %v, %v", i, a, err)
				}
				if i < 2 && p.all() != tt.asked {
					t.Errorf("time %d: %d requests, want %d", i, p.all(), tt.asked)
				}
			}
		})
	}
}

func TestAKeyMustBeListedByItsOwner(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	public := signature.MarshalPublicKeyPEM(&private.PublicKey)
	n, p, victim := newNode(t, settings{}), newPeer(t), newPeer(t)
	victim.show("/users/carol", victim.person(t, "carol", 1))
	p.show("/users/bob", p.person(t, "bob", 1)) // bob's document has another key than the one that signs
	claiming := func(id, owner string) vocab.Doc {
		return vocab.Doc{"id": p.URL + id, "type": "Key", "owner": owner, "publicKeyPem": public}
	}
	p.show("/keys/foreign", claiming("/keys/foreign", victim.URL+"/users/carol"))
	p.show("/keys/nobody", claiming("/keys/nobody", victim.URL+"/users/nobody"))
	p.show("/keys/unlisted", claiming("/keys/unlisted", p.URL+"/users/bob"))
	p.show("/keys/missing", claiming("/keys/missing", p.URL+"/users/missing"))
	p.show("/keys/ours", claiming("/keys/ours", "https://us.example/users/alice"))
	p.show("/keys/ownerless", with(claiming("/keys/ownerless", ""), vocab.Doc{"owner": nil}))
	p.show("/keys/other", claiming("/keys/main", p.URL+"/users/bob"))
	p.show("/keys/stub", vocab.Doc{"id": victim.URL + "/users/carol", "type": "Person", "publicKey": claiming("/keys/stub", victim.URL+"/users/carol")})
	p.say("/keys/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, victim.URL+"/users/carol", http.StatusFound)
	})
	// Mallory lists a key of carol's as mallory's. Trent lists a key of trent's as carol's.
	p.show("/users/mallory", with(p.person(t, "mallory", 0), vocab.Doc{"publicKey": vocab.Doc{"id": victim.URL + "/users/carol#main-key",
		"owner": p.URL + "/users/mallory", "publicKeyPem": public}}))
	p.show("/users/trent", with(p.person(t, "trent", 0), vocab.Doc{"publicKey": vocab.Doc{"id": p.URL + "/users/trent#main-key",
		"owner": victim.URL + "/users/carol", "publicKeyPem": public}}))
	if _, err := n.Resolve(context.Background(), p.id("/users/mallory")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, key, want string }{
		{"SIG-03 the owner is of another server", p.URL + "/keys/foreign", ""},
		{"SIG-03 the owner does not exist", p.URL + "/keys/nobody", ""},
		{"SIG-03 the owner does not list it", p.URL + "/keys/unlisted", ""},
		{"SIG-03 the owner of the same server does not exist", p.URL + "/keys/missing", ""},
		{"SIG-03 the owner is one of us", p.URL + "/keys/ours", ""},
		{"SIG-03 a stub of another server's actor", p.URL + "/keys/stub", ""},
		{"SIG-03 a redirect to another server", p.URL + "/keys/away", ""},
		{"no owner", p.URL + "/keys/ownerless", ""},
		{"SIG-05 the document is of another key", p.URL + "/keys/other", ""},
		{"SIG-04 a query in the fragment", p.URL + "/users/bob#main-key?x", ""},
		{"SIG-04 no fragment", p.URL + "/users/bob", ""},
		{"a key the actor does not have", p.URL + "/users/bob#second", ""},
		{"an actor listed the key of another", victim.URL + "/users/carol#main-key", ""},
		{"the owner it names is another", p.URL + "/users/trent#main-key", ""},
		{"SIG-02 another actor of the server", p.URL + "/users/bob#main-key", p.URL + "/users/mallory"},
		{"another server than the actor's", p.URL + "/users/bob#main-key", victim.URL + "/users/carol"},
		{"SIG-31 the instance for its user", p.URL + "/users/bob#main-key", p.URL + "/actor"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second attempt is refused for the same reason as the first
				a, err := n.signer(t, signature.Key{ID: tt.key, Private: private}, signature.RFC9421, vocab.ID(tt.want))
				if fault.KindOf(err) != fault.Unauthenticated {
					t.Errorf("Signer = %v, %v, want 401", a, err)
				}
			}
		})
	}
	if got := p.asked("/keys/unlisted"); got != 1 {
		t.Errorf("SIG-27: the document of a key was fetched %d times", got)
	}
}

// Mallory lists bob's key as hers. Both are on the same server. Bob's requests still verify.
func TestAKeyWithAFragmentIsOfTheActorAtItsDocument(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	other, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	p.show("/users/mallory", with(p.person(t, "mallory", 1), vocab.Doc{"publicKey": vocab.Doc{"id": p.URL + "/users/bob#main-key",
		"owner": p.URL + "/users/mallory", "publicKeyPem": signature.MarshalPublicKeyPEM(&other.PublicKey)}}))
	if _, err := n.Resolve(context.Background(), p.id("/users/mallory")); err != nil {
		t.Fatal(err)
	}
	for time, n := range []*node{n, n, n.restarted(t)} {
		a, err := n.signer(t, signature.Key{ID: p.URL + "/users/bob#main-key", Private: private}, signature.RFC9421, p.id("/users/bob"))
		if err != nil || a.ID != p.id("/users/bob") {
			t.Errorf("time %d: Signer = %v, %v, want bob", time, a, err)
		}
	}
}

// Mallory lists a key of bob's as hers. The key has its own document, which names bob as the
// owner. So the key belongs to bob.
func TestAKeyWithADocumentIsOfTheOwnerThatTheDocumentNames(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	other, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	id := p.URL + "/users/bob/main-key"
	listing := func(name string, key int, public *rsa.PublicKey) vocab.Doc {
		return with(p.person(t, name, key), vocab.Doc{"publicKey": vocab.Doc{"id": id, "owner": p.URL + "/users/" + name, "publicKeyPem": signature.MarshalPublicKeyPEM(public)}})
	}
	bob := listing("bob", 0, &private.PublicKey)
	p.show("/users/mallory", listing("mallory", 1, &other.PublicKey))
	if _, err := n.Resolve(context.Background(), p.id("/users/mallory")); err != nil {
		t.Fatal(err)
	}
	p.show("/users/bob", bob)
	p.show("/users/bob/main-key", vocab.Doc{"id": bob["id"], "type": "Person", "preferredUsername": "bob", "publicKey": bob["publicKey"]})
	for time, n := range []*node{n, n, n.restarted(t)} {
		a, err := n.signer(t, signature.Key{ID: id, Private: private}, signature.RFC9421, p.id("/users/bob"))
		if err != nil || a.ID != p.id("/users/bob") {
			t.Errorf("time %d: Signer = %v, %v, want bob", time, a, err)
		}
		if a, err := n.signer(t, signature.Key{ID: id, Private: other}, signature.RFC9421, p.id("/users/bob")); err == nil && a.ID == p.id("/users/bob") {
			t.Errorf("time %d: mallory signs as bob", time)
		}
	}
}

func TestKeysThatVerifyNothing(t *testing.T) {
	t.Parallel()
	const id = "https://them.example/users/bob"
	good, _ := theirs(t, 0)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	small := func(bits uint, e int) string {
		n := new(big.Int).SetBit(new(big.Int).Lsh(big.NewInt(1), bits-1), 0, 1)
		return block("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsa.PublicKey{N: n, E: e}))
	}
	for _, tt := range []struct {
		name string
		key  vocab.ActorKey
	}{
		{"SIG-16 an HMAC secret", vocab.ActorKey{PEM: "secret"}},
		{"SIG-17 512 bits", vocab.ActorKey{PEM: small(512, 65537)}},
		{"SIG-17 16384 bits", vocab.ActorKey{PEM: small(16384, 65537)}},
		{"SIG-17 e=1", vocab.ActorKey{PEM: small(2048, 1)}},
		{"SIG-17 e=3", vocab.ActorKey{PEM: small(2048, 3)}},
		{"SIG-17 a private key", vocab.ActorKey{PEM: block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(good))}},
		{"SIG-17 5 MB", vocab.ActorKey{PEM: strings.Repeat("A", 5<<20)}},
		{"SIG-18 small order", vocab.ActorKey{Multibase: "z" + base58.Encode(append([]byte{0xed, 1}, make([]byte, 32)...))}},
		{"SIG-18 another codec", vocab.ActorKey{Multibase: "z" + base58.Encode(append([]byte{0xec, 1}, make([]byte, 32)...))}},
		{"SIG-18 base64url", vocab.ActorKey{Multibase: "uAAAA"}},
		{"nothing", vocab.ActorKey{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.key.ID, tt.key.Owner = id+"#main-key", id
			a := &vocab.Actor{ID: id, Keys: []vocab.ActorKey{tt.key}}
			if k, err := ListedKey(a, tt.key.ID); err == nil {
				t.Errorf("Key = %v, want none", k)
			}
		})
	}
}
