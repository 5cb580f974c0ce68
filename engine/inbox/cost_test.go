package inbox_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// These are the highest costs allowed for one note, with connections to the databases already
// open. A batch has the same limits, except for the WAL. A change that raises a limit says why.
const (
	// round trips to each user's database: claim and read ahead, then store and commit
	mostTrips   = 2
	mostShared  = 3    // round trips to the instance's database, for several users: find followers, write the journal, and end its row after the answer
	mostWAL     = 5000 // bytes of WAL, for one user
	mostFlushes = 1    // flushes of the WAL, for one user
)

// traffic counts round trips to databases, and the transactions that a test commits there. A
// commit flushes the WAL once if its transaction wrote something. Nothing else waits for a flush.
// So the count exceeds the true number of flushes by at most one, with fsync on or off.
type traffic struct{ trips, flushes atomic.Int64 }

// trips holds the traffic to users' databases and to the instance's database.
type trips struct{ users, instance traffic }

func (n *trips) reset() {
	for _, t := range []*traffic{&n.users, &n.instance} {
		t.trips.Store(0)
		t.flushes.Store(0)
	}
}

// The test is not parallel, because it would count other tests' round trips. Tests of other
// packages also write WAL on the same server, so the test uses the note with the least WAL.
func TestWhatANoteCosts(t *testing.T) {
	var trips trips
	in := peertest.NewInbound(t, func(d *inbox.Deps) { d.Store = throughProxy(t, d.Store, &trips) })
	s := peertest.NewStage(t, in).Scene(t)
	s.Follows("p:/carol")
	const warm, notes = 20, 50
	for n := range warm { // at first, PostgreSQL prepares statements and writes whole pages
		s.MustSend("p:/carol", mine, note(n, "hi"))
	}
	written := func() (bytes int64) {
		if err := s.SQL(t).QueryRowContext(t.Context(), `SELECT pg_current_wal_insert_lsn() - '0/0'`).Scan(&bytes); err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	trips.reset()
	var each []int64
	for n := range notes {
		before := written()
		s.MustSend("p:/carol", mine, note(warm+n, "hi"))
		each = append(each, written()-before)
	}
	slices.Sort(each)
	wal := each[0]
	t.Logf("%d round trips for %d notes, from %d bytes of WAL each, the median is %d", trips.users.trips.Load(), notes, wal, each[notes/2])
	if got := trips.users.trips.Load(); got == 0 || got > mostTrips*notes {
		t.Errorf("%d round trips for %d notes, want %d each at most", got, notes, mostTrips)
	}
	if got := trips.users.flushes.Load() + trips.instance.flushes.Load(); got != mostFlushes*notes {
		t.Errorf("%d flushes for %d notes, want %d each", got, notes, mostFlushes)
	}
	if wal > mostWAL {
		t.Errorf("%d bytes of WAL a note, want %d at most", wal, mostWAL)
	}
}

// A lock delays the first note. Meanwhile the other notes queue up, and one batch stores them.
func TestWhatABatchCosts(t *testing.T) {
	var trips trips
	in := peertest.NewInbound(t, func(d *inbox.Deps) { d.Store = throughProxy(t, d.Store, &trips) })
	s := peertest.NewStage(t, in).Scene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", mine, note(0, "hi"))
	var bodies []string
	for n := range 40 {
		bodies = append(bodies, note(1+n, "hi"))
	}
	release := hold(t, s)
	trips.reset()
	answers := queue(t, s, bodies...)
	release()
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
	if got := trips.users.trips.Load(); got == 0 || got > 2*mostTrips {
		t.Errorf("%d round trips for a note and a batch, want %d at most", got, 2*mostTrips)
	}
	if got := trips.users.flushes.Load() + trips.instance.flushes.Load(); got == 0 || got > 2*mostFlushes {
		t.Errorf("%d flushes for a note and a batch, want %d at most", got, 2*mostFlushes)
	}
}

// The test is not parallel, because it would count other tests' round trips. Sometimes a note also
// renews a value of the instance that is cached for some seconds.
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
		users[n], instance[n] = trips.users.trips.Load(), trips.instance.trips.Load()
	}
	if got := slices.Max(users); got > 2*mostTrips {
		t.Errorf("%d round trips to two users, want %d to each at most", users, mostTrips)
	}
	if got := slices.Min(instance); got == 0 || got > mostShared {
		t.Errorf("%d round trips to the instance, want %d at most where nothing is renewed", instance, mostShared)
	}
}

// throughProxy opens a cluster's databases a second time, through a proxy that counts the traffic.
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
	t.Cleanup(func() { _ = listener.Close() }) // closing it ends the proxy
	instance := strings.TrimSuffix(probe.Database, "_probe")
	counter := func(startup []byte) *traffic {
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

// proxy forwards messages between clients and the server. For each connection it calls counter()
// with the first message. counter() returns the traffic to which the connection belongs.
func proxy(listener net.Listener, socket string, counter func(startup []byte) *traffic) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // the listener was closed
		}
		server, err := net.Dial("unix", socket)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			defer server.Close()
			r := bufio.NewReader(client)
			startup, err := message(r, 0)
			if err != nil {
				_ = client.Close()
				return
			}
			of := counter(startup)
			go func() {
				_ = of.countFlushes(server, client) // until either side closes its connection
				_ = client.Close()
			}()
			_ = of.countTrips(startup, r, server) // also until either side closes its connection
		}()
	}
}

// countTrips forwards a client's messages. It counts how often the client waits for an answer,
// which is after each Sync or Query (PostgreSQL documentation, Message Formats). It does not count
// the ping that a pool sends before it uses a connection that was idle for a second.
func (n *traffic) countTrips(startup []byte, r *bufio.Reader, server io.Writer) error {
	for m := startup; ; {
		if _, err := server.Write(m); err != nil {
			return err
		}
		var err error
		if m, err = message(r, 1); err != nil {
			return err
		}
		if m[0] == 'S' || m[0] == 'Q' && !bytes.Contains(m, []byte("-- ping")) {
			n.trips.Add(1)
		}
	}
}

// countFlushes forwards the server's messages and counts commits. Each COMMIT counts. So does each
// statement outside of BEGIN and COMMIT, because the server commits it at the next ReadyForQuery.
// A SELECT does not count: it flushes nothing, and once a second a SELECT asks which users are
// active.
func (n *traffic) countFlushes(server io.Reader, client io.Writer) error {
	r, begun, alone := bufio.NewReader(server), false, false
	for {
		m, err := message(r, 1)
		if err != nil {
			return err
		}
		switch completes := m[0] == 'C'; {
		case completes && bytes.Equal(m[5:], []byte("BEGIN\x00")):
			begun = true
		case completes && bytes.Equal(m[5:], []byte("COMMIT\x00")):
			n.flushes.Add(1)
			begun = false
		case completes && bytes.Equal(m[5:], []byte("ROLLBACK\x00")):
			begun = false
		case completes:
			alone = alone || !begun && !bytes.HasPrefix(m[5:], []byte("SELECT"))
		case m[0] == 'Z' && alone:
			n.flushes.Add(1)
			alone = false
		}
		if _, err := client.Write(m); err != nil {
			return err
		}
	}
}

// message reads one message. The message begins with a type, which has as many bytes as the
// parameter kind says, and with its length.
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
