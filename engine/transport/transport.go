// Package transport is the only door to other servers: signed GET and POST with size and time
// limits and a guard that keeps peers from sending us to addresses that only we can reach.
package transport

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/signature"
)

// Config says where requests may go and how long they may take.
type Config struct {
	// AllowAddresses may be contacted beside the public internet: at any port, as literals, and
	// under names that are not in the public DNS.
	AllowAddresses []netip.Prefix
	AllowHTTP      bool                  // plain http too, at port 80
	UserAgent      string                // such as "Lightweb/0.1 (+https://example.org)"
	First          signature.Dialect     // for unknown hosts; RFC9421 when zero
	Timeout        time.Duration         // of one Get or Post with its redirects and second knock; 10 s when zero
	HostConns      int                   // connections per host for each of GET and POST; 4 when zero
	Paused         bool                  // nobody is contacted: every Get and Post is ErrPaused
	Now            func() time.Time      // time.Now when nil
	Registerer     prometheus.Registerer // where the metrics go; nil for nowhere
}

// Keys are the keys of the actor who signs.
type Keys struct {
	RSA     signature.Key
	Ed25519 signature.Key // may be zero
}

// Hosts remembers hosts, each named by the authority of its URLs (vocab.ID.Host).
type Hosts interface {
	// Dialect returns the dialect that host took last.
	Dialect(ctx context.Context, host string) (d signature.Dialect, known bool)
	// Learn remembers the dialect that host took, when it is another one than before.
	Learn(ctx context.Context, host string, d signature.Dialect)
}

// Gate says whether a host may be contacted at all: nil, or why not.
type Gate interface {
	Check(host string) error
}

// Client contacts other servers. It is safe for concurrent use.
type Client struct {
	cfg     Config
	gate    Gate
	hosts   Hosts
	guard   *guard
	metrics *prometheus.CounterVec

	// signing holds a place per processor: an RSA signature is a millisecond of work, and a burst
	// of deliveries must leave room for what comes in.
	signing chan struct{}

	// GET and POST have connections of their own: a host that answers our POST only after it has
	// fetched from us must not keep us from fetching from it the key that its own POST waits for.
	reads, writes *http.Transport
}

// maxHeader is how many bytes of response headers are read.
const maxHeader = 64 << 10

// New returns a client that asks gate about every host and keeps in hosts what it learns.
func New(cfg Config, gate Gate, hosts Hosts) *Client {
	if cfg.First == 0 {
		cfg.First = signature.RFC9421
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.HostConns <= 0 {
		cfg.HostConns = 4
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Client{cfg: cfg, gate: gate, hosts: hosts, guard: newGuard(cfg), metrics: requestsTotal(cfg.Registerer), signing: make(chan struct{}, runtime.GOMAXPROCS(0))}
	c.reads, c.writes = c.newPool(), c.newPool()
	return c
}

// newPool returns connections that go through the guard. They speak HTTP/1.1, one request at a
// time: a limit on connections limits the work a peer can make, and a stalled answer holds up no
// other.
func (c *Client) newPool() *http.Transport {
	var only http.Protocols
	only.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // never from the environment: a proxy would be a way around the guard
		DialContext:            c.guard.dial,
		Protocols:              &only,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.cfg.Timeout,
		DisableCompression:     true, // readBody unpacks, under its own limit
		MaxConnsPerHost:        c.cfg.HostConns,
		MaxIdleConnsPerHost:    c.cfg.HostConns,
		MaxIdleConns:           256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Close closes idle connections. Requests under way end by themselves.
func (c *Client) Close() {
	c.reads.CloseIdleConnections()
	c.writes.CloseIdleConnections()
}
