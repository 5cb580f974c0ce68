package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/server"
)

// The server refuses the body. The client sends its whole request before it reads the answer, as
// most clients do. The body is larger than the buffers of a connection.
func TestAClientWhoseBodyIsRefusedReadsTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(d *server.Deps) { d.MLSBodyLimit = 8 << 20 })
	f.inbox.err = fault.New(fault.Unavailable, "later")
	srv := httptest.NewUnstartedServer(f.public)
	server.Harden(srv.Config, nil)
	srv.Start()
	t.Cleanup(srv.Close)
	whole := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	chunked := func(body string) string {
		return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	}
	body, largest := strings.Repeat("x", 4<<20), strings.Repeat("x", 8<<20)
	for _, c := range []struct {
		why, head, body string
		status          int
	}{
		{"no room for a large body", "POST /inbox HTTP/1.1\r\nContent-Type: application/activity+json\r\n", whole(largest), 503},
		{"too long, in chunks", "POST /inbox HTTP/1.1\r\nContent-Type: application/activity+json\r\n", chunked(body), 413},
		{"a password too long", "POST /api/session HTTP/1.1\r\nContent-Type: application/json\r\n", whole(body), 413},
		{"no JSON", "POST /api/session HTTP/1.1\r\nContent-Type: text/plain\r\n", whole(body), 415},
		{"no token", "POST /api/activity HTTP/1.1\r\nContent-Type: application/json\r\n", whole(body), 401},
		{"no such address", "POST /nothing HTTP/1.1\r\n", chunked(body), 404},
		{"no such method", "POST /actor HTTP/1.1\r\n", whole(body), 405},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, c.head+"Host: example.org\r\n"+c.body); err != nil {
				t.Fatalf("the connection broke while the body was sent: %v", err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != c.status || !answer.Close {
				t.Errorf("%d, closes the connection: %t; want %d and true", answer.StatusCode, answer.Close, c.status)
			}
		})
	}
}
