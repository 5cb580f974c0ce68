// Package transport makes all requests to other servers: signed GET and POST with limits of size
// and time. Its guard keeps peers from making this server contact addresses that only this
// server can reach.
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
	// AllowAddresses are addresses that may be contacted in addition to the public internet.
	// They may be contacted at any port, as literals, and under names that are not in the public
	// DNS.
	AllowAddresses []netip.Prefix
	AllowHTTP      bool                  // plain http is allowed, too, at port 80
	UserAgent      string                // such as "Lightweb/0.1 (+https://example.org)"
	First          signature.Dialect     // the dialect for hosts without a stored dialect; RFC9421 if zero
	Timeout        time.Duration         // for one Get, Post or Ask with its redirects and its second knock (see knock); 10 s when zero
	HostConns      int                   // connections per host for each of GET and POST; 4 when zero
	Paused         bool                  // no server is contacted, so every Get, Post and Ask returns ErrPaused
	Now            func() time.Time      // time.Now when nil
	Registerer     prometheus.Registerer // registers the metrics; if nil, they are not registered
}

// Keys are the keys of the actor that signs.
type Keys struct {
	RSA     signature.Key
	Ed25519 signature.Key // may be zero
}

// Hosts stores facts about hosts, each named by the authority of its URLs (vocab.ID.Host).
type Hosts interface {
	// Dialect returns the dialect that host accepted last; the result known is false when none
	// is stored.
	Dialect(ctx context.Context, host string) (d signature.Dialect, known bool)
	// Learn stores the dialect that host accepted, if it differs from the stored one.
	Learn(ctx context.Context, host string, d signature.Dialect)
}

// Gate decides which hosts may be contacted at all. Check returns nil, or an error that gives
// the reason why host may not be contacted.
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
	doubts  doubts

	// signing is a semaphore with a place per processor. An RSA signature takes a millisecond of
	// processor time, and a burst of deliveries must leave time for incoming requests.
	signing chan struct{}

	// GET and POST have separate connections, so our waiting POSTs cannot block our GETs. Some
	// hosts answer our POST only after they have fetched something from us. At the same time a
	// POST of such a host may wait here until we have fetched its key.
	reads, writes *http.Transport
}

// maxHeader limits the bytes of response headers that are read.
const maxHeader = 64 << 10

// New returns a client that asks gate about every host, and stores in hosts the dialects that it
// learns.
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

// newPool returns a pool of connections that go through the guard. The connections use HTTP/1.1
// and carry one request at a time. So the limit on connections limits the work that a peer can
// cause, and a stalled answer delays no other answer.
func (c *Client) newPool() *http.Transport {
	var only http.Protocols
	only.SetHTTP1(true)
	return &http.Transport{
		// There is no proxy, not even one of the environment, because a proxy would bypass the
		// guard.
		Proxy:                  nil,
		DialContext:            c.guard.dial,
		Protocols:              &only,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.cfg.Timeout,
		DisableCompression:     true, // readBody decompresses, under its own limit
		MaxConnsPerHost:        c.cfg.HostConns,
		MaxIdleConnsPerHost:    c.cfg.HostConns,
		MaxIdleConns:           256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Close closes idle connections. Requests in progress continue to their end.
func (c *Client) Close() {
	c.reads.CloseIdleConnections()
	c.writes.CloseIdleConnections()
}
