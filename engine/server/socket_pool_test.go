package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A road opens a socket over HTTP for a client at an address. If the server refuses, refused is the
// server's response.
type road func(f *fixture, url, token, address string) (leave func(), refused *http.Response)

var roads = map[socket.Kind]road{
	socket.SSE: func(f *fixture, url, token, address string) (func(), *http.Response) {
		f.Helper()
		r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, url+"/api/events", nil)
		if err != nil {
			f.Fatal(err)
		}
		bearerToken(token)(r)
		header("X-Forwarded-For", address)(r)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			f.Fatal(err)
		}
		leave := func() { _ = resp.Body.Close() } // ends the stream
		f.Cleanup(leave)
		if resp.StatusCode != http.StatusOK {
			return nil, resp
		}
		return leave, nil
	},
	socket.WebSocket: func(f *fixture, url, token, address string) (func(), *http.Response) {
		f.Helper()
		o := withToken(token)
		o.HTTPHeader.Set("X-Forwarded-For", address)
		s, refused := f.dialSocket(url, "", o)
		if refused != nil {
			return nil, refused
		}
		return func() { _ = s.CloseNow() }, nil
	},
}

// useUpShare opens sockets that a client address pays, until the hub refuses one. The function
// closeOne closes one of them.
func (f *fixture) useUpShare(address string) (closeOne func()) {
	f.Helper()
	var held []*socket.Socket
	closeOne = func() {
		held[0].Close()
		held = held[1:]
	}
	f.Cleanup(func() {
		for len(held) > 0 {
			closeOne()
		}
	})
	payer := policy.NameAddress(netip.PrefixFrom(netip.MustParseAddr(address), 32))
	for {
		u, err := vocab.ParseUsername(fmt.Sprint("u", len(held)/policy.SocketsOfUser))
		if err != nil {
			f.Fatal(err)
		}
		s, err := f.deps.Sockets.Open(socket.Request{User: u, Kind: socket.SSE, Payer: payer})
		if err != nil {
			return closeOne
		}
		held = append(held, s)
	}
}

// wantOverloaded fails the test unless a response refuses a socket because of the pool.
func (f *fixture) wantOverloaded(refused *http.Response) {
	f.Helper()
	if refused == nil {
		f.Error("a socket is opened, want it refused")
		return
	}
	var body bytes.Buffer
	_, _ = body.ReadFrom(refused.Body) // a part of it fails the check below
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") == "" || !strings.Contains(body.String(), "problems/overloaded") {
		f.Errorf("a socket is answered %d %v %s, want overloaded", refused.StatusCode, refused.Header, body.String())
	}
}

// The address of a client pays for its sockets. When the address has used up its share of the pool,
// clients there are refused, and clients elsewhere are not. When a client leaves, another may come.
func TestTheAddressOfAClientPaysForItsSockets(t *testing.T) {
	t.Parallel()
	for kind, open := range roads {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(d *server.Deps) { d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
			const here, elsewhere = "198.51.100.7", "203.0.113.9"
			url, token := f.serve().URL, f.token(f.alice, "read")
			closeOne := f.useUpShare(here)
			_, refused := open(f, url, token, here) //nolint:bodyclose // a cleanup closes it
			f.wantOverloaded(refused)
			closeOne()
			leave, refused := open(f, url, token, here) //nolint:bodyclose // the same
			if refused != nil {
				t.Fatalf("after a socket of the address closed, one is answered %d", refused.StatusCode)
			}
			_, refused = open(f, url, token, here) //nolint:bodyclose // the same
			f.wantOverloaded(refused)
			leave()
			redistest.Eventually(t, "a client opens a socket after another left", func() bool {
				_, refused := open(f, url, token, here) //nolint:bodyclose // the same
				return refused == nil
			})
			if _, refused := open(f, url, token, elsewhere); refused != nil { //nolint:bodyclose // the same
				t.Errorf("a client at another address is answered %d", refused.StatusCode)
			}
		})
	}
}
