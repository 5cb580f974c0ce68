// Package peertest simulates other servers for the inbound half of an engine. The actors of these
// servers have real keys, their documents are fetched over loopback, and their requests are signed
// as on the open network. Tests can read the engine's real databases afterwards.
package peertest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Peer simulates another server. It answers requests for a path as Serve, Answer or Handle has
// set, and 404 for all other paths. It accepts every POST. It records all requests, except those
// POSTs that a handler set by Handle answers.
type Peer struct {
	Origin string
	actors *atomic.Uint32 // the number of actors in its test

	mu     sync.Mutex
	pages  map[string]page
	asked  []string
	posted []Posted
	gate   chan struct{} // if not nil, responses wait until it is closed
}

// Posted is a POST request, with its body.
type Posted struct {
	*http.Request
	Content []byte
}

type page struct {
	status int
	body   []byte
	handle http.HandlerFunc // if not nil, answers in place of status and body
}

// New starts a peer on an address of loopback, such as 127.0.0.2. Each address is an origin and
// a domain of its own.
func New(t testing.TB, address string) *Peer {
	t.Helper()
	p, s := serve(t, "http", address)
	s.Start()
	return p
}

// NewTLS does the same as New, for a peer that speaks TLS. The parameter config may be faulty on
// purpose.
func NewTLS(t testing.TB, address string, config *tls.Config) *Peer {
	t.Helper()
	p, s := serve(t, "https", address)
	s.TLS = config
	s.StartTLS()
	return p
}

func serve(t testing.TB, scheme, address string) (*Peer, *httptest.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skip("this machine has no such address: ", err)
	}
	p := &Peer{Origin: scheme + "://" + listener.Addr().String(), actors: actorsOf(t), pages: map[string]page{}}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0)}}
	t.Cleanup(s.Close)
	return p, s
}

// Serve serves a document at a path.
func (p *Peer) Serve(path string, doc []byte) { p.show(path, page{status: http.StatusOK, body: doc}) }

// Answer answers requests for a path with a status and no body.
func (p *Peer) Answer(path string, status int) { p.show(path, page{status: status}) }

// Handle makes h answer requests for a path.
func (p *Peer) Handle(path string, h http.HandlerFunc) { p.show(path, page{handle: h}) }

func (p *Peer) show(path string, s page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[path] = s
}

// Asked returns the paths that were requested so far, except those of POSTs.
func (p *Peer) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Posted returns the POST requests that the peer got so far.
func (p *Peer) Posted() []Posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.posted)
}

// Stall makes the peer accept requests and not answer them until resume is called. A handler set
// by Handle waits only if it calls WriteHeader.
func (p *Peer) Stall() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gate := make(chan struct{})
	p.gate = gate
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(gate)
		p.gate = nil
	}
}

// stalled is a response that is not sent until the gate is open or the client has hung up.
type stalled struct {
	http.ResponseWriter
	request *http.Request
	gate    <-chan struct{}
}

// WriteHeader implements http.ResponseWriter.
func (s stalled) WriteHeader(status int) {
	select {
	case <-s.gate:
	case <-s.request.Context().Done():
	}
	s.ResponseWriter.WriteHeader(status)
}

func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	if p.gate != nil {
		w = stalled{w, r, p.gate}
	}
	s, ok := p.pages[r.URL.Path]
	if r.Method != http.MethodPost {
		p.asked = append(p.asked, r.URL.Path)
	}
	p.mu.Unlock()
	if s.handle != nil {
		s.handle(w, r)
		return
	}
	if r.Method == http.MethodPost {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has hung up
		}
		p.mu.Lock()
		p.posted = append(p.posted, Posted{r, content})
		p.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if !ok {
		s.status = http.StatusNotFound
	}
	w.Header().Set("Content-Type", vocab.ActivityJSON)
	w.WriteHeader(s.status)
	_, _ = w.Write(s.body) // fails if the client has hung up
}

// Actor is an actor on a peer.
type Actor struct {
	ID   vocab.ID
	Keys transport.Keys
	Doc  vocab.Doc
	peer *Peer
	path string
}

// Actor makes an actor with an RSA key and an Ed25519 key, and serves its document at path.
func (p *Peer) Actor(path string) *Actor {
	id := p.Origin + path
	a := &Actor{ID: vocab.ID(id), peer: p, path: path, Keys: newKeys(id, p.actors.Add(1))}
	a.Doc = vocab.Doc{"@context": vocab.ActorContext(), "id": id, "type": "Person", "preferredUsername": path[len(path)-1:],
		"inbox": id + "/inbox", "followers": id + "/followers", "manuallyApprovesFollowers": false,
		"publicKey": vocab.Doc{"id": a.Keys.RSA.ID, "owner": id,
			"publicKeyPem": signature.MarshalPublicKeyPEM(a.Keys.RSA.Private.Public().(*rsa.PublicKey))},
		"assertionMethod": []any{vocab.Doc{"id": a.Keys.Ed25519.ID, "type": "Multikey", "controller": id,
			"publicKeyMultibase": signature.MarshalMultikey(a.Keys.Ed25519.Private.Public().(ed25519.PublicKey))}}}
	a.Show()
	return a
}

// Show serves the actor's current document.
func (a *Actor) Show() { a.peer.Serve(a.path, a.Doc.JSON()) }

// Gone makes the actor's server answer 410 for the actor.
func (a *Actor) Gone() { a.peer.Answer(a.path, http.StatusGone) }

// Post returns a POST request to an inbox, with the parameter body as its body. The request
// declares the media type, and is signed in the dialect d at the time now. It is signed with
// Ed25519 in RFC 9421, and with RSA in draft-cavage.
func (a *Actor) Post(t testing.TB, inbox, mediaType string, body []byte, d signature.Dialect, now time.Time) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, inbox, bytes.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	key := a.Keys.Ed25519
	if d == signature.Cavage {
		key = a.Keys.RSA
	}
	if err := signature.Sign(r, body, key, d, now); err != nil {
		t.Fatal(err)
	}
	return r
}

// rsaKeys returns only four keys, because creating a key takes long. Actors that a test makes one
// after another have different keys, even if other tests run in parallel.
var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	keys := make([]*rsa.PrivateKey, 4)
	for i := range keys {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic("peertest: make a key: " + err.Error())
		}
		keys[i] = k
	}
	return keys
})

var actorsByTest sync.Map // maps the name of a test to the number of its actors

// actorsOf returns the counter of a test's actors. All peers of the test share the counter. A
// subtest uses the counter of the test around it if that outer test has peers.
func actorsOf(t testing.TB) *atomic.Uint32 {
	for outer := t.Name(); outer != ""; outer = outer[:max(strings.LastIndexByte(outer, '/'), 0)] {
		if n, ok := actorsByTest.Load(outer); ok {
			return n.(*atomic.Uint32)
		}
	}
	n, _ := actorsByTest.LoadOrStore(t.Name(), new(atomic.Uint32))
	return n.(*atomic.Uint32)
}

func newKeys(id string, n uint32) transport.Keys {
	_, e, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic("peertest: make a key: " + err.Error())
	}
	return transport.Keys{
		RSA:     signature.Key{ID: id + "#main-key", Private: rsaKeys()[int(n)%len(rsaKeys())]},
		Ed25519: signature.Key{ID: id + "#ed25519-key", Private: e},
	}
}
