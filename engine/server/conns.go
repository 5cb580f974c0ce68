package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// newcomerTime is the time that a connection without a request has left to send one when the
// server shuts down. http.Server.Shutdown itself would wait five seconds for such connections,
// which browsers and proxies open in advance.
const newcomerTime = time.Second

// conns are the HTTP connections of one listener.
type conns struct {
	all     *policy.Pool
	proxies []netip.Prefix // their connections are limited by the size of the pool alone

	mu     sync.Mutex
	open   map[net.Conn]string   // the open connections, with their payers
	silent map[net.Conn]struct{} // connections over which no request has come yet
}

func newConns(proxies []netip.Prefix) *conns {
	return &conns{all: policy.Connections.PoolOf(mostConns()), proxies: proxies, open: map[net.Conn]string{}, silent: map[net.Conn]struct{}{}}
}

// mostConns returns how many connections a listener may have.
func mostConns() int64 {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return policy.Connections.Pool
	}
	return connsWithin(files.Cur)
}

// connsWithin returns how many connections a listener may have in a process that may open the
// given number of files. If this number is small, the two listeners together may use three
// quarters of it. The rest is for connections to databases and other servers.
func connsWithin(files uint64) int64 {
	return min(policy.Connections.Pool, int64(files/8)*3)
}

// followState is the ConnState hook of an HTTP server. It closes a new connection if there are
// too many already, from its client or in all.
func (c *conns) followState(conn net.Conn, state http.ConnState) {
	if !c.noteConn(conn, state) {
		_ = conn.Close() // no request was accepted over it
	}
}

func (c *conns) noteConn(conn net.Conn, state http.ConnState) (welcome bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // connections without an address have the zero address, so they are counted together
		addr := from.Addr().Unmap()
		payer := policy.NameAddress(networkOf(addr))
		if isAmong(c.proxies, addr) {
			payer = ""
		}
		if !c.all.Take(payer, 1) {
			return false
		}
		c.open[conn] = payer
		c.silent[conn] = struct{}{}
		return true
	case http.StateHijacked, http.StateClosed:
		payer, counted := c.open[conn]
		if !counted {
			break
		}
		delete(c.open, conn)
		c.all.Give(payer, 1)
	}
	delete(c.silent, conn)
	return true
}

// turnAway closes the connections over which no request has come.
func (c *conns) turnAway() {
	c.mu.Lock()
	gone := c.silent
	c.silent = map[net.Conn]struct{}{}
	c.mu.Unlock()
	for conn := range gone {
		_ = conn.Close() // no request was accepted over it
	}
}
