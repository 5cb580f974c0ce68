package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
)

// Browsers and proxies open connections before they have a request. Shutdown does not wait for
// these connections. It waits for requests that have begun.
func TestSilentConnectionsDoNotHoldUpAStop(t *testing.T) {
	t.Parallel()
	asked, stopping := make(chan struct{}), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-stopping
		_, _ = io.WriteString(w, "done") // the error does not matter: the test checks the text that the client received
	})}
	Harden(srv, nil)
	srv.RegisterOnShutdown(func() { close(stopping) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l) //nolint:errcheck // Shutdown ends it
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answered := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		answered <- string(body)
	}()
	<-asked // the server accepts connections in order, so it has accepted the silent one, too
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown = %v, want an end within the time", err)
	}
	if got := <-answered; got != "done" {
		t.Errorf("the request under way was answered %q, want done", got)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is still open")
	}
}

// dialed is a connection. The field from is its remote address.
type dialed struct {
	net.Conn
	from string
}

func (d dialed) RemoteAddr() net.Addr {
	at, err := net.ResolveTCPAddr("tcp", d.from)
	if err != nil {
		panic(err)
	}
	return at
}

func TestNobodyTakesAllConnections(t *testing.T) {
	t.Parallel()
	c := newConns([]netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")})
	if most := mostConns(); most < 16 || most > policy.Connections.Pool {
		t.Errorf("%d connections are taken, want up to %d", most, policy.Connections.Pool)
	}
	c.all = policy.Connections.PoolOf(16)
	all := map[string][]net.Conn{}
	come := func(n int, from string) (welcome int) {
		for range n {
			conn := &dialed{from: from}
			if c.noteConn(conn, http.StateNew) {
				welcome++
				all[from] = append(all[from], conn)
			} else {
				c.noteConn(conn, http.StateClosed)
			}
		}
		return welcome
	}
	for _, tt := range []struct {
		name, from string
		come, want int
	}{
		{"PAR-14 one client", "192.0.2.1:1", 20, 11},
		{"a neighbour", "192.0.2.2:1", 20, 1},
		{"CLI-05 a network", "[2001:db8::1]:1", 3, 1},
		{"CLI-05 the same one", "[2001:db8::2]:1", 3, 0},
		{"a proxy", "10.0.0.1:1", 20, 3},
		{"PAR-14 anybody, when all are taken", "198.51.100.9:1", 1, 0},
	} {
		if got := come(tt.come, tt.from); got != tt.want {
			t.Errorf("%s: %d of %d were taken, want %d", tt.name, got, tt.come, tt.want)
		}
	}
	for n, conn := range all["10.0.0.1:1"] {
		for _, state := range []http.ConnState{http.StateActive, http.StateIdle, []http.ConnState{http.StateClosed, http.StateHijacked}[n%2], http.StateClosed} {
			c.noteConn(conn, state)
		}
	}
	if got := come(5, "198.51.100.9:1"); got != 1 {
		t.Errorf("%d were taken after others have gone, want 1", got)
	}
	if got := come(1, "192.0.2.1:2"); got != 0 {
		t.Error("who has its share got more")
	}
}

func TestBothListenersLeaveFilesToTheRest(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int64{256: 96, 1024: 384, 1 << 16: policy.Connections.Pool, ^uint64(0): policy.Connections.Pool} {
		if got := connsWithin(files); got != want {
			t.Errorf("with %d files a listener has %d connections, want %d", files, got, want)
		}
	}
}

func TestAConnectionTooManyIsClosed(t *testing.T) {
	t.Parallel()
	srv := &http.Server{Handler: http.NotFoundHandler()}
	Harden(srv, nil)
	c := newConns(nil)
	c.all = policy.Connections.PoolOf(1)
	srv.ConnState = c.followState
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l) //nolint:errcheck // Close ends it
	t.Cleanup(func() { _ = srv.Close() })
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := dial(), dial()
	if n, err := second.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("PAR-14: a second connection of one client is open")
	}
	if _, err := io.WriteString(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(first), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusNotFound {
		t.Errorf("the first one is answered %d, want 404", r.StatusCode)
	}
}
