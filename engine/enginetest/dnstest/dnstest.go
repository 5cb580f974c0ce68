// Package dnstest is a name server for tests. A test sets the addresses of a name. The test can
// set different addresses for successive queries.
package dnstest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server answers queries for the names that Say has set. It knows no other names.
type Server struct {
	conn net.PacketConn

	mu    sync.Mutex
	names map[string][][]netip.Addr
	asked map[string]int
}

// Start starts a server at an address, over UDP. The server ends when the test ends.
func Start(t testing.TB, address string) (*Server, error) {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	s := &Server{conn: conn, names: map[string][][]netip.Addr{}, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serve(t)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done }) // an error of Close does not matter here
	return s, nil
}

// Say sets the addresses of a name. The name *.example means every name directly below example.
// Each query for IPv4 addresses gets the next element of turns, and a query for IPv6 addresses
// gets the current element. After the last element, every query gets the last one again. If turns
// is empty, each query is answered with SERVFAIL.
func (s *Server) Say(name string, turns ...[]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = turns
}

// Asked returns how often a name was looked up.
func (s *Server) Asked(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// Resolver returns a resolver that sends its queries to this server.
func (s *Server) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", s.conn.LocalAddr().String())
	}}
}

func (s *Server) serve(t testing.TB) {
	buf := make([]byte, 2048)
	for {
		n, from, err := s.conn.ReadFrom(buf)
		if err != nil {
			return // the connection is closed
		}
		answer, err := s.answer(buf[:n])
		if err == nil {
			_, err = s.conn.WriteTo(answer, from)
		}
		if err != nil {
			t.Errorf("dns: %v", err)
			return
		}
	}
}

func (s *Server) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	if len(m.Questions) != 1 {
		return nil, fmt.Errorf("asked for %v", m.Questions)
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	q := m.Questions[0]
	var addrs []netip.Addr
	addrs, m.RCode = s.lookUp(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")), q.Type == dnsmessage.TypeA)
	for _, a := range addrs {
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
		if a.Is4() && q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
		}
		if a.Is6() && q.Type == dnsmessage.TypeAAAA {
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return m.Pack()
}

// lookUp returns the current addresses of a name, and the code of the answer. A resolver asks for
// IPv4 and for IPv6 addresses at the same time, and only the query for IPv4 ends a turn. The
// parameter ends is true for that query.
func (s *Server) lookUp(name string, ends bool) ([]netip.Addr, dnsmessage.RCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ends {
		s.asked[name]++
	}
	if _, told := s.names[name]; !told {
		_, above, _ := strings.Cut(name, ".")
		name = "*." + above
	}
	turns, told := s.names[name]
	switch {
	case !told:
		return nil, dnsmessage.RCodeNameError
	case len(turns) == 0:
		return nil, dnsmessage.RCodeServerFailure
	}
	if ends && len(turns) > 1 {
		s.names[name] = turns[1:]
	}
	return turns[0], dnsmessage.RCodeSuccess
}
