package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// newcomerTime is how long a connection over which no request has come may still bring one when the server shuts down.
// Shutdown itself waits five seconds for such a connection: browsers and proxies open them in advance.
const newcomerTime = time.Second

// newcomers are the connections over which no request has come yet.
type newcomers struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// follow is a server's ConnState.
func (n *newcomers) follow(c net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if state == http.StateNew {
		n.conns[c] = struct{}{}
	} else {
		delete(n.conns, c)
	}
}

// turnAway closes those that are there.
func (n *newcomers) turnAway() {
	n.mu.Lock()
	gone := n.conns
	n.conns = map[net.Conn]struct{}{}
	n.mu.Unlock()
	for c := range gone {
		_ = c.Close() // nothing was promised over it
	}
}
