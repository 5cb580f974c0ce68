// Package peertest plays other servers to the inbound half of an engine: actors with real keys on
// loopback, whose documents are fetched and whose requests are signed as on the open network, and
// real databases to look at afterwards.
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

// Peer is another server. It serves what it was given, answers 404 to the rest, takes whatever is
// posted, and keeps what it was asked for and sent.
type Peer struct {
	Origin string
	actors *atomic.Uint32 // the count of its test's actors

	mu     sync.Mutex
	pages  map[string]page
	asked  []string
	posted []Posted
	gate   chan struct{} // nil, or closed when answers may leave
}

// Posted is a request that brought something.
type Posted struct {
	*http.Request
	Content []byte
}

type page struct {
	status int
	body   []byte
	handle http.HandlerFunc // answers in place of both
}

// New starts a peer on an address of loopback, such as 127.0.0.2: each address is an origin and a
// domain of its own.
func New(t testing.TB, address string) *Peer {
	t.Helper()
	p, s := serve(t, "http", address)
	s.Start()
	return p
}

// NewTLS is New for a peer that speaks TLS, however badly.
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

// Serve shows a document under a path.
func (p *Peer) Serve(path string, doc []byte) { p.show(path, page{status: http.StatusOK, body: doc}) }

// Answer answers requests for a path with a status and nothing else.
func (p *Peer) Answer(path string, status int) { p.show(path, page{status: status}) }

// Handle lets h answer requests for a path, however badly.
func (p *Peer) Handle(path string, h http.HandlerFunc) { p.show(path, page{handle: h}) }

func (p *Peer) show(path string, s page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pages[path] = s
}

// Asked returns the paths that were asked for so far.
func (p *Peer) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

// Posted returns what was posted to the peer so far.
func (p *Peer) Posted() []Posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.posted)
}

// Stall makes the peer take what is posted and answer nothing at all, until resume is called.
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

// stalled is an answer that does not leave until the gate is open, or the client has hung up.
type stalled struct {
	http.ResponseWriter
	request *http.Request
	gate    <-chan struct{}
}

// WriteHeader is http.ResponseWriter's.
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
			return // who sends it has hung up
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
	_, _ = w.Write(s.body) // who asked may have hung up
}

// Actor is somebody on a peer.
type Actor struct {
	ID   vocab.ID
	Keys transport.Keys
	Doc  vocab.Doc
	peer *Peer
	path string
}

// Actor makes an actor whose document lies under path, with an RSA key and an Ed25519 key, and
// shows it.
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

// Show shows the actor's document as it is now.
func (a *Actor) Show() { a.peer.Serve(a.path, a.Doc.JSON()) }

// Gone lets the actor's server say 410 of it.
func (a *Actor) Gone() { a.peer.Answer(a.path, http.StatusGone) }

// Post returns a request to an inbox with a body of a media type, signed at now.
func (a *Actor) Post(t testing.TB, inbox, mediaType string, body []byte, d signature.Dialect, now time.Time) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, inbox, bytes.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	if err := signature.Sign(r, body, a.Keys.RSA, d, now); err != nil {
		t.Fatal(err)
	}
	return r
}

// rsaKeys are few, since making one takes long; actors that a test makes one after the other have
// different ones, whatever tests run beside it.
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

var actorsByTest sync.Map // of the name of a test, the count of its actors

// actorsOf returns the count of actors of a test, which all its peers share: that of the test
// around it, if this has peers too.
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
