package instance_test

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
)

// hangable is a proxy to the test server. It stops passing on answers once hang is called.
type hangable struct {
	url  string
	mu   sync.Mutex
	hung bool
	both []net.Conn
}

func makeHangable(t *testing.T) *hangable {
	t.Helper()
	cfg, err := pgx.ParseConfig(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hangable{url: (&url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: l.Addr().String(), Path: "/", RawQuery: "sslmode=disable"}).String()}
	network, address := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial(network, address)
			if err != nil {
				t.Error(err)
				return
			}
			h.mu.Lock()
			h.both = append(h.both, near, far)
			h.mu.Unlock()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
			go h.answer(near, far)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.both {
			_ = c.Close()
		}
	})
	return h
}

// answer passes on the server's answers. After hang is called, it drops the next answer and ends.
func (h *hangable) answer(near, far net.Conn) {
	for b := make([]byte, 4096); ; {
		n, err := far.Read(b)
		h.mu.Lock()
		hung := h.hung
		h.mu.Unlock()
		if hung {
			return
		}
		if _, fail := near.Write(b[:n]); err != nil || fail != nil {
			_ = near.Close()
			return
		}
	}
}

func (h *hangable) hang() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hung = true
}

func TestALockIsGivenUpAlthoughTheServerHangs(t *testing.T) {
	t.Parallel()
	_, cfg := dbtest.Named(t)
	cfg.Migrate = false
	road := makeHangable(t)
	cfg.URL = road.url
	c := dbtest.Connect(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	release, err := c.Instance.Locks.Prune(ctx)
	if err != nil {
		t.Fatal(err)
	}
	road.hang()
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		release()
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("the command waits for the server after its time has run out")
	}
}

// A second retry waits for the end of the first, as long as its caller says.
func TestARetryWaitsForTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	_, cfg := dbtest.Named(t)
	locks := dbtest.Connect(t, cfg).Instance.Locks
	first, err := locks.Retry(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{0, time.Millisecond} {
		if _, err := locks.Retry(t.Context(), wait); fault.KindOf(err) != fault.Busy {
			t.Errorf("a second retry that waits %s: %v, want Busy", wait, err)
		}
	}
	type locked struct {
		release func()
		err     error
	}
	second := make(chan locked, 1)
	go func() {
		release, err := locks.Retry(t.Context(), time.Minute)
		second <- locked{release, err}
	}()
	watch := dbtest.Session(t, cfg.Name)
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for waits := false; !waits; {
		select {
		case got := <-second:
			t.Fatalf("the second retry does not wait: %v", got.err)
		case <-limit:
			t.Fatal("nobody waits for the lock")
		case <-tick.C:
		}
		if err := watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	first()
	got := <-second
	if got.err != nil {
		t.Fatalf("after the first retry has ended: %v", got.err)
	}
	got.release()
}
