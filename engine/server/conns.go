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

// newcomerTime is how long a connection over which no request has come may still bring one when the
// server shuts down. Shutdown itself waits five seconds for such a connection: browsers and proxies
// open them in advance.
const newcomerTime = time.Second

// conns are the connections to one listener that speak HTTP.
type conns struct {
	all     *policy.Pool
	proxies []netip.Prefix // may have any number

	mu     sync.Mutex
	open   map[net.Conn]string   // and who pays for them
	silent map[net.Conn]struct{} // those over which no request has come yet
}

func newConns(proxies []netip.Prefix) *conns {
	return &conns{all: policy.Connections.PoolOf(mostConns()), proxies: proxies, open: map[net.Conn]string{}, silent: map[net.Conn]struct{}{}}
}

// mostConns returns how many connections a listener holds, where the system allows the process so
// many: of what it allows a quarter is for databases and other servers.
func mostConns() int64 {
	most := policy.Connections.Pool
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && int64(files.Cur/4) < most/3 {
		most = int64(files.Cur/4) * 3
	}
	return most
}

// followState is a server's ConnState. A connection too many is closed as it comes.
func (c *conns) followState(conn net.Conn, state http.ConnState) {
	if !c.noteConn(conn, state) {
		_ = conn.Close() // nothing was promised over it
	}
}

func (c *conns) noteConn(conn net.Conn, state http.ConnState) (welcome bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // zero, and so counted together, for what has no address
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

// turnAway closes those over which no request has come.
func (c *conns) turnAway() {
	c.mu.Lock()
	gone := c.silent
	c.silent = map[net.Conn]struct{}{}
	c.mu.Unlock()
	for conn := range gone {
		_ = conn.Close() // nothing was promised over it
	}
}
