package peertest

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/enginetest/keytest"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Origin is the public origin of the engine under test. No server listens there.
const Origin = "https://us.example"

// Inbound is the inbound half of an engine with real parts: databases, keys, and fetching over
// loopback.
type Inbound struct {
	inbox.Deps
	Inbox    *inbox.Inbox
	Registry *registry.Registry
	Keys     *actor.Keyring
	Dialects Dialects // the signature dialects that hosts accept

	config db.Config
	folder string
	policy atomic.Pointer[policy.Lists]
	later  atomic.Int64 // the time by which the clock is ahead
	mu     sync.Mutex
	woken  []vocab.Username

	databases map[vocab.Username]*sql.DB
	unable    map[vocab.Username]bool
	instance  *sql.DB // nil until a test uses it
}

// NewInbound makes the inbound half of an engine. The functions in change may alter the parts that
// it is made of.
func NewInbound(t testing.TB, change ...func(*inbox.Deps)) *Inbound {
	t.Helper()
	in := &Inbound{config: dbtest.Config(t), folder: t.TempDir(), databases: map[vocab.Username]*sql.DB{}, unable: map[vocab.Username]bool{}}
	in.policy.Store(&policy.Lists{})
	log := slog.New(slog.DiscardHandler)
	store, err := db.Open(t.Context(), in.config, log)
	if err != nil {
		t.Fatal("open test databases: ", err)
	}
	store.Subscribe(user.Subscriber{Name: "inbound", Committed: in.noteOwing})
	users := filepath.Join(in.folder, "users")
	in.Registry = registry.New(in.folder, users, log)
	in.Keys = actor.NewKeyring(users, in.folder, Origin)
	keytest.Lend(t, filepath.Join(in.folder, "instance", "keys"))
	if err := in.Keys.CreateInstance(); err != nil {
		t.Fatal(err)
	}
	local := actor.NewLocal(Origin, in.Keys, in.Registry, "Lightweb")
	gate := policy.NewGate(func() policy.Lists { return *in.policy.Load() }, policy.Open, local.Host())
	client := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
		Timeout: 5 * time.Second, Now: in.now}, gate, &in.Dialects)
	resolver := actor.NewResolver(actor.ResolverDeps{Local: local, Users: store.Instance.Users, Store: store.Instance.Actors, Keeper: store.Instance.Actors, Fetch: client, Gate: gate, TTL: 24 * time.Hour,
		AllowHTTP: true, Now: in.now, Log: log})
	in.Deps = inbox.Deps{Store: store, Local: local, Actors: resolver, Verifier: actor.NewVerifier(resolver, gate, Origin, in.now), Gate: gate,
		Hosts: policy.NewLimiter(policy.Rate{}, in.now, 1000), Senders: policy.NewLimiter(policy.Rate{}, in.now, 1000),
		Relays:   relay.NewList(relay.Deps{Store: store.Instance.Relays, Actor: local.InstanceID(), Keys: in.Keys.Instance, Poster: client, Gate: gate, Log: log, Now: in.now}),
		Handlers: handler.New(local, in.Registry), Profiles: in.Registry, Heard: in.Dialects.Heard, BodyLimit: 1 << 20, Log: log, Now: in.now}
	for _, c := range change {
		c(&in.Deps)
	}
	in.Inbox = inbox.New(in.Deps)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := in.Inbox.Close(ctx); err != nil {
			t.Error("close inbox: ", err)
		}
		client.Close()
		for _, d := range append(slices.Collect(maps.Values(in.databases)), in.instance) {
			if d == nil {
				continue
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := store.Destroy(ctx); err != nil {
			t.Error("drop test databases: ", err)
		}
	})
	return in
}

func (in *Inbound) now() time.Time { return time.Now().Add(time.Duration(in.later.Load())) }

// Later moves the clock forward by d.
func (in *Inbound) Later(d time.Duration) { in.later.Add(int64(d)) }

// Block adds hosts to the blocked domains.
func (in *Inbound) Block(hosts ...string) {
	l := *in.policy.Load()
	l.Blocked = slices.Concat(l.Blocked, hosts)
	in.policy.Store(&l)
}

// Suspend adds actors to the suspended actors.
func (in *Inbound) Suspend(actors ...vocab.ID) {
	l := *in.policy.Load()
	l.Suspended = slices.Concat(l.Suspended, actors)
	in.policy.Store(&l)
}

// noteOwing records that the user of a commit owes deliveries, if the commit added deliveries.
func (in *Inbound) noteOwing(_ context.Context, c user.Commit) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.Owes {
		in.woken = append(in.woken, c.User)
	}
}

// Woken reports whether the dispatcher of a real engine would have been told that u owes a
// delivery.
func (in *Inbound) Woken(u vocab.Username) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Contains(in.woken, u)
}

// User makes a user with keys.
func (in *Inbound) User(t testing.TB, name string) vocab.Username {
	t.Helper()
	u := dbtest.User(t, in.Store, name)
	keytest.Lend(t, in.Keys.Dir(u))
	if err := in.Keys.Create(u); err != nil {
		t.Fatal(err)
	}
	return u
}

// DB returns u's database. Tests may read the database and damage it.
func (in *Inbound) DB(t testing.TB, u vocab.Username) *sql.DB {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	if d := in.databases[u]; d != nil {
		return d
	}
	d, err := dbtest.Open(in.config.URL, in.config.Name+"_"+u.String())
	if err != nil {
		t.Fatal(err)
	}
	d.SetMaxIdleConns(1)                  // opening a connection takes longer than most queries
	d.SetConnMaxIdleTime(5 * time.Second) // so that many scenes do not keep connections open
	in.databases[u] = d
	return d
}

// SQL returns the instance database. Tests may read it.
func (in *Inbound) SQL(t testing.TB) *sql.DB {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.instance == nil {
		d, err := dbtest.Open(in.config.URL, in.config.Name)
		if err != nil {
			t.Fatal(err)
		}
		d.SetMaxOpenConns(4) // so that many scenes do not use too many connections
		in.instance = d
	}
	return in.instance
}

// Unable records that the test has broken part of u's database, so that activities cannot be
// applied for u. Able takes this back.
func (in *Inbound) Unable(u vocab.Username) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unable[u] = true
}

// Able records that activities can be applied for u again.
func (in *Inbound) Able(u vocab.Username) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.unable, u)
}

func (in *Inbound) whoIsUnable() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	names := []string{} // stored as an empty array, not as NULL
	for u := range in.unable {
		names = append(names, u.String())
	}
	return names
}

// Down makes u's database refuse connections until Up is called, and ends all its sessions.
func (in *Inbound) Down(t testing.TB, u vocab.Username) {
	t.Helper()
	in.Unable(u)
	in.DB(t, u).SetMaxIdleConns(0) // closes the open connections
	in.DB(t, u).SetMaxIdleConns(1)
	dbtest.RefuseConnections(t, dbtest.Database(t, "postgres"), in.config.Name+"_"+u.String())
}

// DownInstance makes the instance database refuse connections until UpInstance is called.
func (in *Inbound) DownInstance(t testing.TB) {
	t.Helper()
	dbtest.RefuseConnections(t, dbtest.Database(t, "postgres"), in.config.Name)
}

// UpInstance makes the instance database accept connections again.
func (in *Inbound) UpInstance(t testing.TB) {
	t.Helper()
	dbtest.AllowConnections(t, dbtest.Database(t, "postgres"), in.config.Name)
}

// Up makes u's database accept connections again.
func (in *Inbound) Up(t testing.TB, u vocab.Username) {
	t.Helper()
	in.Able(u)
	dbtest.AllowConnections(t, dbtest.Database(t, "postgres"), in.config.Name+"_"+u.String())
}

// Instance runs a command in the instance database.
func (in *Inbound) Instance(t testing.TB, command string) {
	t.Helper()
	if _, err := in.SQL(t).ExecContext(t.Context(), command); err != nil {
		t.Error(err)
	}
}

// Column returns the first column of a query in u's database, as text.
func (in *Inbound) Column(t testing.TB, u vocab.Username, query string, args ...any) []string {
	t.Helper()
	rows, err := in.DB(t, u).QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Dialects stores in memory which signature dialect each host accepts.
type Dialects struct{ known sync.Map }

func (d *Dialects) Dialect(_ context.Context, host string) (signature.Dialect, bool) {
	v, ok := d.known.Load(host)
	if !ok {
		return 0, false
	}
	return v.(signature.Dialect), true
}

func (d *Dialects) Learn(_ context.Context, host string, to signature.Dialect) {
	d.known.Store(host, to)
}

func (d *Dialects) Heard(_ context.Context, host string, in signature.Dialect, _ string) {
	if _, known := d.Dialect(context.Background(), host); !known || in == signature.Cavage {
		d.known.Store(host, in)
	}
}
