package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Browsers and proxies open connections before they have anything to ask: a stop must not wait for them, and must wait
// for who has asked.
func TestSilentConnectionsDoNotHoldUpAStop(t *testing.T) {
	t.Parallel()
	asked, stopping := make(chan struct{}), make(chan struct{})
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-stopping
		_, _ = io.WriteString(w, "done") // the client's copy is what is looked at
	})}
	Harden(srv)
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
	<-asked // connections are accepted in their order: the silent one is there, too
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
