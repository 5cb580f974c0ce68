package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKeys = sync.OnceValue(func() *Keys {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	_, e, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return &Keys{
		RSA:     signature.Key{ID: "https://us.example/actor#main-key", Private: r},
		Ed25519: signature.Key{ID: "https://us.example/actor#ed25519-key", Private: e},
	}
})

// seen is one request as it arrived at the peer.
type seen struct {
	method, path, knock string // knock is "rfc9421 rsa", "rfc9421 ed25519", "cavage rsa" or "unsigned"
	host                string
	header              http.Header
	body                string
}

// peer is another server on loopback. Its handler answers, and it records the requests.
type peer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
}

// newPeer starts a peer. If secure is not nil, the peer uses TLS.
func newPeer(t *testing.T, secure *tls.Config, h func(w http.ResponseWriter, r *http.Request, s seen)) *peer {
	t.Helper()
	p := &peer{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("peer reads: %v", err)
		}
		s := seen{r.Method, r.URL.Path, knockOf(r, body), r.Host, r.Header, string(body)}
		p.mu.Lock()
		p.requests = append(p.requests, s)
		p.mu.Unlock()
		h(w, r, s)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure != nil {
		p.TLS = secure
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

// knockOf verifies a request as a peer does. It returns the request's dialect and kind of key.
func knockOf(r *http.Request, body []byte) string {
	if r.Header.Get("Signature") == "" {
		return "unsigned"
	}
	origin := "http://" + r.Host
	if r.TLS != nil {
		origin = "https://" + r.Host
	}
	claims, err := signature.Parse(r, body, signature.Options{Origin: origin, Now: time.Now()})
	if err != nil || len(claims) != 1 {
		return fmt.Sprintf("%d signatures: %v", len(claims), err)
	}
	for name, k := range map[string]signature.Key{"rsa": testKeys().RSA, "ed25519": testKeys().Ed25519} {
		if claims[0].KeyID != k.ID {
			continue
		}
		if err := claims[0].Verify(k.Private.Public()); err != nil {
			return err.Error()
		}
		return claims[0].Dialect.String() + " " + name
	}
	return "unknown key " + claims[0].KeyID
}

func (p *peer) id(path string) vocab.ID { return vocab.ID(p.URL + path) }

func (p *peer) saw() []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// knocks returns the dialect and kind of key of each request so far.
func (p *peer) knocks() []string {
	var all []string
	for _, s := range p.saw() {
		all = append(all, s.knock)
	}
	return all
}

// memory implements Hosts with a map.
type memory struct {
	mu    sync.Mutex
	known map[string]signature.Dialect
	learn int
}

func (m *memory) Dialect(_ context.Context, host string) (signature.Dialect, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, known := m.known[host]
	return d, known
}

func (m *memory) Learn(_ context.Context, host string, d signature.Dialect) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[host] = d
	m.learn++
}

// closed is a gate that refuses the host that it names.
type closed string

func (c closed) Check(host string) error {
	if c != "" && host == string(c) {
		return fault.New(fault.Forbidden, "blocked")
	}
	return nil
}

func loopback() Config {
	return Config{
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		AllowHTTP:      true,
		UserAgent:      "Lightweb/test (+https://us.example)",
	}
}

func newClient(t *testing.T, cfg Config, gate Gate) (*Client, *memory) {
	t.Helper()
	m := &memory{known: map[string]signature.Dialect{}}
	c := New(cfg, gate, m)
	t.Cleanup(c.Close)
	return c, m
}
