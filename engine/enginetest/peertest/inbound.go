package peertest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Origin is the public origin of the engine under test. Nothing listens there.
const Origin = "https://us.example"

// Inbound is the inbound half of an engine on real parts: databases, keys, fetching over loopback.
type Inbound struct {
	inbox.Deps
	Inbox    *inbox.Inbox
	Registry *registry.Registry
	Keys     *actor.Keyring
	Dialects Dialects // what hosts are known to take

	config db.Config
	folder string
	policy atomic.Pointer[policy.Lists]
	later  atomic.Int64 // how far the clock is ahead
	mu     sync.Mutex
	woken  []vocab.Username

	databases map[vocab.Username]*sql.DB
	unable    map[vocab.Username]bool
	instance  *sql.DB // nil until somebody looks
}

// NewInbound makes an engine's inbound half. change may alter what it is made from.
func NewInbound(t testing.TB, change ...func(*inbox.Deps)) *Inbound {
	t.Helper()
	in := &Inbound{config: dbtest.Config(t), folder: t.TempDir(), databases: map[vocab.Username]*sql.DB{}, unable: map[vocab.Username]bool{}}
	in.policy.Store(&policy.Lists{})
	log := slog.New(slog.DiscardHandler)
	store, err := db.Open(t.Context(), in.config, log)
	if err != nil {
		t.Fatal("open test databases: ", err)
	}
	store.Subscribe(db.Subscriber{Name: "inbound", Committed: in.noteOwing})
	users := filepath.Join(in.folder, "users")
	in.copyKeys(t, filepath.Join(in.folder, "instance", "keys"))
	in.Registry = registry.New(in.folder, users, log)
	in.Keys = actor.NewKeyring(users, in.folder, Origin)
	local := actor.NewLocal(Origin, in.Keys, in.Registry, "Lightweb")
	gate := policy.NewGate(func() policy.Lists { return *in.policy.Load() }, policy.Open, local.Host())
	client := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
		Timeout: 5 * time.Second, Now: in.now}, gate, &in.Dialects)
	resolver := actor.NewResolver(actor.ResolverDeps{Local: local, Store: store.Instance.Actors, Keeper: store.Instance.Actors, Fetch: client, Gate: gate, TTL: 24 * time.Hour,
		AllowHTTP: true, Now: in.now, Log: log})
	in.Deps = inbox.Deps{Store: store, Local: local, Actors: resolver, Verifier: actor.NewVerifier(resolver, gate, Origin, in.now), Gate: gate,
		Hosts: policy.NewLimiter(policy.Rate{}, in.now, 1000), Senders: policy.NewLimiter(policy.Rate{}, in.now, 1000),
		Relays:   relay.NewList(relay.Deps{Store: store.Instance.Relays, Actor: local.InstanceID(), Keys: in.Keys.Instance, Poster: client, Gate: gate, Log: log, Now: in.now}),
		Handlers: handler.New(local, in.Registry), Profiles: in.Registry, Heard: in.Dialects.Heard, Log: log, Now: in.now}
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

// Later moves the clock on.
func (in *Inbound) Later(d time.Duration) { in.later.Add(int64(d)) }

// Block makes hosts blocked.
func (in *Inbound) Block(hosts ...string) {
	l := *in.policy.Load()
	l.Blocked = slices.Concat(l.Blocked, hosts)
	in.policy.Store(&l)
}

// Suspend makes actors suspended.
func (in *Inbound) Suspend(actors ...vocab.ID) {
	l := *in.policy.Load()
	l.Suspended = slices.Concat(l.Suspended, actors)
	in.policy.Store(&l)
}

// noteOwing notes whose commits owe deliveries.
func (in *Inbound) noteOwing(_ context.Context, c db.Commit) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.Owes {
		in.woken = append(in.woken, c.User)
	}
}

// Woken reports whether the dispatcher would have been told that u owes something.
func (in *Inbound) Woken(u vocab.Username) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Contains(in.woken, u)
}

// User makes a user with keys.
func (in *Inbound) User(t testing.TB, name string) vocab.Username {
	t.Helper()
	u := dbtest.User(t, in.Store, name)
	in.copyKeys(t, filepath.Join(in.folder, "users", name, "keys"))
	return u
}

// copyKeys puts keys into a folder, the same everywhere: no test tells users apart by them, and
// making them takes long.
func (in *Inbound) copyKeys(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, key := range keyFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var keyFiles = sync.OnceValue(func() map[string][]byte {
	dir, err := os.MkdirTemp("", "lw-keys-")
	if err != nil {
		panic("peertest: " + err.Error())
	}
	defer os.RemoveAll(dir)
	if err := actor.NewKeyring(dir, dir, Origin).CreateInstance(); err != nil {
		panic("peertest: " + err.Error())
	}
	files := map[string][]byte{}
	for _, name := range []string{"rsa.pem", "ed25519.pem"} {
		if files[name], err = os.ReadFile(filepath.Join(dir, "instance", "keys", name)); err != nil {
			panic("peertest: " + err.Error())
		}
	}
	return files
})

// DB returns u's database, to look at and to break.
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
	d.SetMaxIdleConns(1)                  // opening one takes longer than most that is asked
	d.SetConnMaxIdleTime(5 * time.Second) // scenes are many
	in.databases[u] = d
	return d
}

// SQL returns the instance database, to look at.
func (in *Inbound) SQL(t testing.TB) *sql.DB {
	t.Helper()
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.instance == nil {
		d, err := dbtest.Open(in.config.URL, in.config.Name)
		if err != nil {
			t.Fatal(err)
		}
		d.SetMaxOpenConns(4) // scenes are many
		in.instance = d
	}
	return in.instance
}

// Unable says that u can take nothing, since the test has broken something of u's, until Able.
func (in *Inbound) Unable(u vocab.Username) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unable[u] = true
}

// Able says that u can take again what comes.
func (in *Inbound) Able(u vocab.Username) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.unable, u)
}

func (in *Inbound) whoIsUnable() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	names := []string{} // not null
	for u := range in.unable {
		names = append(names, u.String())
	}
	return names
}

// Down makes u's database refuse connections until Up. A session with the application name
// "obstruction" ends last: the sessions that wait for its locks cannot commit in between.
func (in *Inbound) Down(t testing.TB, u vocab.Username) {
	t.Helper()
	in.Unable(u)
	database := in.config.Name + "_" + u.String()
	in.DB(t, u).SetMaxIdleConns(0) // closes what is open
	in.DB(t, u).SetMaxIdleConns(1)
	in.exec(t, "postgres", `ALTER DATABASE `+database+` ALLOW_CONNECTIONS false`) // by itself: it holds once it is committed
	in.exec(t, "postgres", `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = '`+database+`' ORDER BY application_name = 'obstruction') sessions`)
}

// Up makes u's database take connections again.
func (in *Inbound) Up(t testing.TB, u vocab.Username) {
	t.Helper()
	in.Able(u)
	in.exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE %s_%s ALLOW_CONNECTIONS true`, in.config.Name, u))
}

// Instance runs a command on the instance database.
func (in *Inbound) Instance(t testing.TB, command string) {
	t.Helper()
	if _, err := in.SQL(t).ExecContext(t.Context(), command); err != nil {
		t.Error(err)
	}
}

func (in *Inbound) exec(t testing.TB, database, command string) {
	t.Helper()
	d, err := dbtest.Open(in.config.URL, database)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.ExecContext(t.Context(), command); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Column returns the first column of a query on u's database, as text.
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

// Dialects remembers in memory how hosts are signed to.
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
	if in == signature.RFC9421 {
		d.known.LoadOrStore(host, in)
	}
}
