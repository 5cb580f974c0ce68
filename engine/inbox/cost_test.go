package inbox_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// What a note to one user costs at most, when the user's database is in use. A change that needs more says why.
const (
	mostTrips = 2       // to the database of the user: claim and read ahead, then store and commit
	mostWAL   = 8 << 10 // bytes
)

// The test is not parallel: what others write would be counted.
func TestWhatANoteCosts(t *testing.T) {
	var trips atomic.Int64
	in := peertest.NewInbound(t, func(d *inbox.Deps) { d.Store = throughProxy(t, d.Store, &trips) })
	s := peertest.NewStage(t, in).Scene(t)
	s.Follows("p:/carol")
	const warm, notes = 20, 50
	for n := range warm { // statements are prepared, pages written whole
		s.MustSend("p:/carol", mine, note(n, "hi"))
	}
	written := func() (bytes int64) {
		if err := s.SQL(t).QueryRowContext(t.Context(), `SELECT pg_current_wal_insert_lsn() - '0/0'`).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	before := written()
	trips.Store(0)
	for n := range notes {
		s.MustSend("p:/carol", mine, note(warm+n, "hi"))
	}
	wal := (written() - before) / notes
	t.Logf("%d round trips for %d notes, %d bytes of WAL each", trips.Load(), notes, wal)
	if got := trips.Load(); got == 0 || got > mostTrips*notes {
		t.Errorf("%d round trips for %d notes, want %d each at most", got, notes, mostTrips)
	}
	if wal > mostWAL {
		t.Errorf("%d bytes of WAL a note, want %d at most", wal, mostWAL)
	}
}

// throughProxy opens the databases of a cluster again, through a proxy that counts round trips to those of users.
func throughProxy(t *testing.T, c *db.Cluster, trips *atomic.Int64) *db.Cluster {
	t.Helper()
	probe, err := c.User(t.Context(), dbtest.User(t, c, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, pair := range strings.Fields(dbtest.URL(t)) {
		name, value, _ := strings.Cut(pair, "=")
		settings[name] = strings.Trim(value, "'")
	}
	if !strings.HasPrefix(settings["host"], "/") {
		t.Skip("PostgreSQL is not reached by a socket")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // which ends the proxy
	go proxy(listener, filepath.Join(settings["host"], ".s.PGSQL."+settings["port"]), trips)
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	url := "host=" + host + " port=" + port + " sslmode=disable user=" + settings["user"]
	again, err := db.Open(t.Context(), db.Config{URL: url, Name: strings.TrimSuffix(probe.Database, "_probe"), MaxConnections: 8}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	return again
}

func proxy(listener net.Listener, socket string, trips *atomic.Int64) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // it was closed
		}
		server, err := net.Dial("unix", socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(client, server) // until either hangs up
			_ = client.Close()
		}()
		go func() {
			_ = count(client, server, trips) // as above
			_ = server.Close()
		}()
	}
}

// count passes on what a client sends, and counts how often it waits for an answer: after a Sync or a Query (PostgreSQL
// documentation, Message Formats).
func count(client io.Reader, server io.Writer, trips *atomic.Int64) error {
	r := bufio.NewReader(client)
	startup, err := message(r, 0)
	if err != nil {
		return err
	}
	users := strings.Contains(string(startup), "_alice")
	for at := startup; ; {
		if _, err := server.Write(at); err != nil {
			return err
		}
		if at, err = message(r, 1); err != nil {
			return err
		}
		if users && (at[0] == 'S' || at[0] == 'Q') {
			trips.Add(1)
		}
	}
}

// message reads one message, which begins with so many bytes of a type and its length.
func message(r *bufio.Reader, kind int) ([]byte, error) {
	head, err := r.Peek(kind + 4)
	if err != nil {
		return nil, err
	}
	n := kind + int(binary.BigEndian.Uint32(head[kind:]))
	if n < kind+4 || n > 64<<20 {
		return nil, errors.New("no message of the protocol")
	}
	m := make([]byte, n)
	_, err = io.ReadFull(r, m)
	return m, err
}
