package redistest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy passes connections on to a server. It can delay the server's answers. It ends with its
// test.
type Proxy struct {
	Addr string

	server string
	delay  atomic.Int64 // nanoseconds
	ended  chan struct{}
	conns  sync.WaitGroup
	mu     sync.Mutex
	open   []net.Conn // guarded by mu
}

// StartProxy runs a proxy in front of the server.
func (s *Server) StartProxy() *Proxy {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), server: s.Addr, ended: make(chan struct{})}
	p.conns.Go(func() { p.accept(l) })
	s.t.Cleanup(func() {
		close(p.ended)
		_ = l.Close() // nothing more comes, however the listener ends
		p.hangUp()
		p.conns.Wait()
	})
	return p
}

// URL returns the URL of the proxy.
func (p *Proxy) URL() string { return "redis://" + p.Addr }

// DelayAnswers sets the time by which each answer from now on is late.
func (p *Proxy) DelayAnswers(by time.Duration) { p.delay.Store(int64(by)) }

func (p *Proxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close() // the client sees that no server answers
			continue
		}
		p.keep(client, server)
		p.conns.Go(func() {
			_, _ = io.Copy(server, client) // ends with either connection
			_ = server.Close()
		})
		p.conns.Go(func() {
			p.answer(client, server)
			_ = client.Close()
		})
	}
}

// keep remembers connections that have to be closed at the end.
func (p *Proxy) keep(all ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = append(p.open, all...)
}

func (p *Proxy) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close() // it may be closed already
	}
}

// answer passes the server's answers on to the client.
func (p *Proxy) answer(client io.Writer, server io.Reader) {
	part := make([]byte, 64<<10)
	for {
		n, err := server.Read(part)
		if err != nil {
			return
		}
		if by := time.Duration(p.delay.Load()); by > 0 {
			select {
			case <-p.ended:
				return
			case <-time.After(by):
			}
		}
		if _, err := client.Write(part[:n]); err != nil {
			return
		}
	}
}
