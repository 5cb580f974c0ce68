package server

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// newcomerTime is how long a connection over which no request has come may still bring one when the server shuts down.
// Shutdown itself waits five seconds for such a connection: browsers and proxies open them in advance.
const newcomerTime = time.Second

// maxConns is how many connections a listener holds, where the system allows the process so many: of what it allows a
// quarter is for databases and other servers. One client has a quarter of them, so that nobody shuts out everybody else.
const maxConns = 8192

// conns are the connections to one listener that speak HTTP.
type conns struct {
	most    int
	proxies []netip.Prefix // may have any number

	mu      sync.Mutex
	open    map[net.Conn]netip.Prefix // and whose they are
	clients map[netip.Prefix]int
	silent  map[net.Conn]struct{} // those over which no request has come yet
}

func newConns(proxies []netip.Prefix) *conns {
	c := &conns{most: maxConns, proxies: proxies, open: map[net.Conn]netip.Prefix{}, clients: map[netip.Prefix]int{}, silent: map[net.Conn]struct{}{}}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur/4 < maxConns/3 {
		c.most = int(files.Cur/4) * 3
	}
	return c
}

// follow is a server's ConnState. A connection too many is closed as it comes.
func (c *conns) follow(conn net.Conn, state http.ConnState) {
	if !c.note(conn, state) {
		_ = conn.Close() // nothing was promised over it
	}
}

func (c *conns) note(conn net.Conn, state http.ConnState) (welcome bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // zero, and so counted together, for what has no address
		addr := from.Addr().Unmap()
		client := network(addr)
		c.open[conn] = client
		c.clients[client]++
		c.silent[conn] = struct{}{}
		return len(c.open) <= c.most && (c.clients[client] <= max(1, c.most/4) || among(c.proxies, addr))
	case http.StateHijacked, http.StateClosed:
		client, counted := c.open[conn]
		if !counted {
			break
		}
		delete(c.open, conn)
		if c.clients[client]--; c.clients[client] == 0 {
			delete(c.clients, client)
		}
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
