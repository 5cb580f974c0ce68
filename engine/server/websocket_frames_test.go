package server_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/server"
)

// The frames of a message have no end. The server closes the socket, even if all frames are empty.
func TestAMessageWithoutEndIsClosed(t *testing.T) {
	f := newFixture(t)
	server.SetFrameTime(f.server, 200*time.Millisecond)
	srv := f.serve()
	var conn net.Conn
	o := withToken(f.token(f.alice, "read"))
	o.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return conn, err
	}}}
	s := f.openSocket(srv.URL, "", o)
	begin, more := []byte{0x01, 0x80, 0, 0, 0, 0}, []byte{0x00, 0x80, 0, 0, 0, 0} // masked frames without content
	if _, err := conn.Write(begin); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := conn.Write(more); err != nil {
				return
			}
		}
	}()
	s.wantClosed(4002)
}
