package feed_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/feed"
)

// wire stands between a client and a server, and counts their round trips: how often the client
// sends something after the server has answered.
type wire struct {
	net.Listener
	trips atomic.Int64
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			running.Go(func() { w.relay(t, client, server) })
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(func() { _ = l.Close() }) // ends Accept
	return w
}

// relay copies both directions of a connection until one side ends.
func (w *wire) relay(t *testing.T, client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		_ = client.Close() // the client sees that the server is not there
		return
	}
	var answered atomic.Bool
	answered.Store(true)
	var both sync.WaitGroup
	both.Go(func() {
		forward(client, server, func() {
			if answered.Swap(false) {
				w.trips.Add(1)
			}
		})
	})
	both.Go(func() { forward(server, client, func() { answered.Store(true) }) })
	both.Wait()
}

// forward copies what comes in to out. It calls each before it passes a part on, and ends both
// connections at the end of one.
func forward(in, out net.Conn, each func()) {
	defer func() { _, _ = in.Close(), out.Close() }() // the other direction may have closed them
	part := make([]byte, 1<<20)
	for {
		n, err := in.Read(part)
		if err != nil {
			return
		}
		each()
		if _, err := out.Write(part[:n]); err != nil {
			return
		}
	}
}

func TestAPageIsTwoRoundTripsWhateverItsSize(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.posts(3 * pageSize)
	for range 2 { // makes and stores the forms that readers are shown
		if _, err := f.cached.Database.Page(t.Context(), f.alice, feed.Main, nil, feed.MaxLimit); err != nil {
			t.Fatal(err)
		}
	}
	w := newWire(t, f.server.Addr)
	f.server = &server{Server: f.server.Server, metrics: prometheus.NewRegistry()}
	f.cached = newCachedAt(t, f.store, f.cached.Database, f.server, "redis://"+w.Addr().String())
	for _, limit := range []int{1, 3, pageSize} { // the page behind a cursor is whole in the index, too
		first := f.countTrips(w, "", limit)
		if second := f.countTrips(w, first.Next, limit); second.Items[0].ID == first.Items[0].ID {
			t.Errorf("the page behind the cursor is the first one: %s", second.JSON())
		}
	}
}

// countTrips reads a page that comes from the cache, and checks that it takes two round trips.
func (f *fixture) countTrips(w *wire, cursor string, limit int) feed.Page {
	f.Helper()
	f.read(cursor, limit)
	before := w.trips.Load()
	p := f.read(cursor, limit)
	if trips := w.trips.Load() - before; trips != 2 || len(p.Items) != limit {
		f.Errorf("a page of %d behind the cursor %q took %d round trips, want 2", len(p.Items), cursor, trips)
	}
	return p
}
