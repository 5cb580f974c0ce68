package inbox_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// A note costs this at most, when the databases are in use. A change that needs more says why.
const (
	mostTrips  = 2       // to the database of each user: claim and read ahead, then store and commit
	mostShared = 3       // to that of the instance, for several users: who follows, the journal, and its end after the answer
	mostWAL    = 8 << 10 // bytes, for one user
)

// trips counts round trips to databases of users and to that of the instance.
type trips struct{ users, instance atomic.Int64 }

func (n *trips) reset() { n.users.Store(0); n.instance.Store(0) }

// The test is not parallel: round trips of others would be counted. Writes of other packages'
// tests to the same server are counted, so that the note counts that cost least.
func TestWhatANoteCosts(t *testing.T) {
	var trips trips
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
	trips.reset()
	wal := int64(math.MaxInt64)
	for n := range notes {
		before := written()
		s.MustSend("p:/carol", mine, note(warm+n, "hi"))
		wal = min(wal, written()-before)
	}
	t.Logf("%d round trips for %d notes, from %d bytes of WAL each", trips.users.Load(), notes, wal)
	if got := trips.users.Load(); got == 0 || got > mostTrips*notes {
		t.Errorf("%d round trips for %d notes, want %d each at most", got, notes, mostTrips)
	}
	if wal > mostWAL {
		t.Errorf("%d bytes of WAL a note, want %d at most", wal, mostWAL)
	}
}

// The test is not parallel, as above. Now and then a note renews what is believed of the instance
// for some seconds.
func TestWhatANoteForSeveralCosts(t *testing.T) {
	var trips trips
	in := peertest.NewInbound(t, func(d *inbox.Deps) { d.Store = throughProxy(t, d.Store, &trips) })
	s := peertest.NewStage(t, in).Scene(t)
	for _, fan := range []*peertest.Scene{s, s.With("fan")} {
		fan.Follows("p:/carol")
	}
	send := func(n int) {
		s.MustSend("p:/carol", shared, fmt.Sprintf(`{"id":"p:/notes/%d/create","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/%[1]d","type":"Note"}}`, n))
	}
	const warm, notes = 5, 20
	for n := range warm {
		send(n)
	}
	users, instance := make([]int64, notes), make([]int64, notes)
	for n := range notes {
		trips.reset()
		send(warm + n)
		users[n], instance[n] = trips.users.Load(), trips.instance.Load()
	}
	if got := slices.Max(users); got > 2*mostTrips {
		t.Errorf("%d round trips to two users, want %d to each at most", users, mostTrips)
	}
	if got := slices.Min(instance); got == 0 || got > mostShared {
		t.Errorf("%d round trips to the instance, want %d at most where nothing is renewed", instance, mostShared)
	}
}

// throughProxy opens the databases of a cluster again, through a proxy that counts round trips.
func throughProxy(t *testing.T, c *db.Cluster, trips *trips) *db.Cluster {
	t.Helper()
	probe, err := c.Instance.Users.Find(t.Context(), dbtest.User(t, c, "probe"))
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
	instance := strings.TrimSuffix(probe.Database, "_probe")
	counter := func(startup []byte) *atomic.Int64 {
		if bytes.Contains(startup, []byte("\x00"+instance+"\x00")) {
			return &trips.instance
		}
		return &trips.users
	}
	go proxy(listener, filepath.Join(settings["host"], ".s.PGSQL."+settings["port"]), counter)
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	url := "host=" + host + " port=" + port + " sslmode=disable user=" + settings["user"]
	again, err := db.Open(t.Context(), db.Config{URL: url, Name: instance, MaxConnections: 8}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	return again
}

// proxy passes on what clients and the server say; counter chooses by a connection's first
// message where its round trips are counted.
func proxy(listener net.Listener, socket string, counter func(startup []byte) *atomic.Int64) {
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
			_ = count(client, server, counter) // as above
			_ = server.Close()
		}()
	}
}

// count passes on what a client sends, and counts how often it waits for an answer: after a Sync
// or a Query (PostgreSQL documentation, Message Formats). A pool that was idle for a second asks
// first whether its connection lives: not counted.
func count(client io.Reader, server io.Writer, counter func(startup []byte) *atomic.Int64) error {
	r := bufio.NewReader(client)
	startup, err := message(r, 0)
	if err != nil {
		return err
	}
	trips := counter(startup)
	for at := startup; ; {
		if _, err := server.Write(at); err != nil {
			return err
		}
		if at, err = message(r, 1); err != nil {
			return err
		}
		if at[0] == 'S' || at[0] == 'Q' && !bytes.Contains(at, []byte("-- ping")) {
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
