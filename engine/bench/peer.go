package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// arrival is an activity that reached an inbox of a peer.
type arrival struct {
	inbox string    // the URL of the inbox
	at    time.Time // when the headers of the request had been read
	body  []byte
}

// peer is another server. It has actors with keys, and inboxes that read an activity, call the
// listener and answer 202. It does not use net/http's server, which would take more processor
// time than an engine that signs with Ed25519.
type peer struct {
	origin   string
	listener net.Listener

	mu    sync.Mutex
	docs  map[string][]byte
	conns map[net.Conn]bool

	heard   atomic.Pointer[func(arrival)]
	stalled atomic.Bool  // inboxes read requests and never answer
	dead    atomic.Bool  // the peer accepts no requests
	knocked atomic.Int64 // connections that were opened while the peer was dead
}

// newPeer starts a peer on an address of loopback, such as 127.0.1.2.
func newPeer(ctx context.Context, address string) (*peer, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address+":0")
	if err != nil {
		return nil, fault.New(fault.Unavailable, fmt.Sprintf("this machine has no address %s to play another server on", address)).
			WithHint("elsewhere than on Linux, give loopback more addresses, or take fewer --hosts")
	}
	p := &peer{origin: "http://" + l.Addr().String(), listener: l, docs: map[string][]byte{}, conns: map[net.Conn]bool{}}
	p.setListener(func(arrival) {})
	go p.acceptConnections()
	return p, nil
}

func (p *peer) host() string { return p.listener.Addr().String() }

func (p *peer) close() {
	_ = p.listener.Close() // a failure to close does not matter at the end
	p.hangUp()
}

// hangUp ends every connection.
func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // the engine repeats its requests on a new connection
	}
}

// stopAnswering closes all connections of the peer, and lets it accept no requests until dead
// is false again.
func (p *peer) stopAnswering() {
	p.dead.Store(true)
	p.hangUp()
}

// setListener sets the function that is called with every activity that arrives from now on.
// Several goroutines may call it at the same time.
func (p *peer) setListener(f func(arrival)) { p.heard.Store(&f) }

const maxArrival = 1 << 20 // bytes of a body that a peer reads

// acceptConnections accepts connections until the listener is closed.
func (p *peer) acceptConnections() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.dead.Load() {
			p.knocked.Add(1)
			_ = c.Close() // as dead hosts do
			continue
		}
		p.mu.Lock()
		p.conns[c] = true
		p.mu.Unlock()
		go p.serveConnection(c)
	}
}

// serveConnection answers the requests on a connection until the engine or hangUp closes it.
func (p *peer) serveConnection(c net.Conn) {
	defer func() {
		_ = c.Close() // either end may have closed it already
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
	}()
	requests := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		at := time.Now()
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxArrival))
		if err != nil {
			return
		}
		answer := p.actorDocument(r.URL.Path)
		if r.Method == http.MethodPost {
			if (*p.heard.Load())(arrival{p.origin + r.URL.Path, at, body}); p.stalled.Load() {
				_, _ = io.Copy(io.Discard, requests) // until the engine gives up
				return
			}
			answer = taken
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// taken is the response to a POST.
var taken = []byte("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

// actorDocument returns the response to a GET.
func (p *peer) actorDocument(path string) []byte {
	p.mu.Lock()
	doc, found := p.docs[path]
	p.mu.Unlock()
	if !found {
		return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", vocab.ActivityJSON, len(doc), doc)
}

// keys are the keys with which the author or all followers of a benchmark sign. The followers of
// one user share them, because keys take long to create and the engine's work does not depend on
// their owner.
type keys struct {
	rsa     *rsa.PrivateKey
	ed25519 ed25519.PrivateKey
	kind    string // the kind of the key that signs
}

// The kinds of keys.
const (
	KeyRSA     = "rsa"
	KeyEd25519 = "ed25519"
)

func checkKey(kind string) error {
	if kind != KeyRSA && kind != KeyEd25519 {
		return fault.New(fault.Usage, fmt.Sprintf("--key %.40q is neither rsa nor ed25519", kind))
	}
	return nil
}

func newKeys(kind string) (k keys, err error) {
	k.kind = kind
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return k, fmt.Errorf("make a key: %w", err)
	}
	if _, k.ed25519, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return k, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

// actor is a remote actor on a peer.
type actor struct {
	id   vocab.ID
	keys keys
}

// newActor creates an actor and publishes its document, with a shared inbox if shared is true. If
// the keys are of the kind Ed25519, the document says that the actor's server accepts such
// signatures (FEP-844e).
func (p *peer) newActor(name string, k keys, shared bool) *actor {
	id := p.origin + "/users/" + name
	doc := vocab.Doc{"@context": vocab.ActorContext(), "id": id, "type": "Person", "preferredUsername": name,
		"inbox": id + "/inbox", "followers": id + "/followers",
		"publicKey": vocab.Doc{"id": id + "#main-key", "owner": id, "publicKeyPem": signature.MarshalPublicKeyPEM(&k.rsa.PublicKey)},
		"assertionMethod": []any{vocab.Doc{"id": id + "#ed25519-key", "type": "Multikey", "controller": id,
			"publicKeyMultibase": signature.MarshalMultikey(k.ed25519.Public().(ed25519.PublicKey))}}}
	if shared {
		doc["endpoints"] = vocab.Doc{"sharedInbox": p.origin + "/inbox"}
	}
	if k.kind == KeyEd25519 {
		doc["generator"] = vocab.Doc{"type": "Application", "implements": vocab.Implements()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.docs["/users/"+name] = doc.JSON()
	return &actor{vocab.ID(id), k}
}

// signedPost returns the bytes of a signed request to an inbox.
func (a *actor) signedPost(inbox string, body []byte) ([]byte, error) {
	r, err := a.signRequest(inbox, body)
	if err != nil {
		return nil, err
	}
	return encodeRequest(r)
}

// signRequest returns a signed request to an inbox.
func (a *actor) signRequest(inbox string, body []byte) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, inbox, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", vocab.ActivityJSON)
	key := signature.Key{ID: string(a.id) + "#main-key", Private: a.keys.rsa}
	if a.keys.kind == KeyEd25519 {
		key = signature.Key{ID: string(a.id) + "#ed25519-key", Private: a.keys.ed25519}
	}
	return r, signature.Sign(r, body, key, signature.RFC9421, time.Now())
}

// newNote returns a public Create of a new note. The Create has approximately 1.2 KB. The id of
// the activity begins with the id of the note.
func (a *actor) newNote(name string, to ...string) (activity, object vocab.ID, body []byte) {
	o := string(a.id) + "/notes/" + name
	now := time.Now().UTC().Format(time.RFC3339)
	cc := append([]string{string(a.id) + "/followers"}, to...)
	body = vocab.Doc{"@context": vocab.Context(), "id": o + "/activity", "type": "Create", "actor": string(a.id), "published": now,
		"to": []string{string(vocab.Public)}, "cc": cc,
		"object": vocab.Doc{"id": o, "type": "Note", "attributedTo": string(a.id), "published": now, "to": []string{string(vocab.Public)}, "cc": cc,
			"url": o, "sensitive": false, "content": "<p>" + strings.Repeat("A note of a length as people write them. ", 9) + name + "</p>", "tag": []any{}}}.JSON()
	return vocab.ID(o + "/activity"), vocab.ID(o), body
}

// prepareRequests makes n requests, in parallel on all processors.
func prepareRequests(ctx context.Context, n int, step func(done, all int), request func(n int) ([]byte, error)) ([][]byte, error) {
	requests := make([][]byte, n)
	made := newCounter(n, step)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for k := range n {
		g.Go(func() (err error) {
			if err = ctx.Err(); err == nil {
				requests[k], err = request(k)
			}
			made()
			return err
		})
	}
	return requests, g.Wait()
}
