// Package dbtest gives each test its own databases on a real PostgreSQL server. If
// LIGHTWEB_TEST_POSTGRES names a server, tests use that server. Otherwise all test programs of a
// run share a private server.
package dbtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

// buffers is the size of PostgreSQL's shared_buffers. It is small, because PostgreSQL scans all
// buffers to drop a table or a database.
const buffers = 64 << 20

var (
	once   sync.Once
	server *embedded.Cluster
	url    string
	broken error
)

// Main runs a package's tests, and then releases the shared server. The server stops when the last
// package has released it. Every package that calls New needs `func TestMain(m *testing.M) {
// dbtest.Main(m) }`.
func Main(m interface{ Run() int }) {
	code := m.Run()
	if server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "stop test server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// URL returns the URL of the server. If there is no PostgreSQL, URL skips the test. If
// LIGHTWEB_TEST_ALL is set, it fails the test instead.
func URL(t testing.TB) string {
	t.Helper()
	once.Do(func() { url, broken = open() })
	if fault.KindOf(broken) == fault.Unavailable && os.Getenv("LIGHTWEB_TEST_ALL") == "" {
		t.Skip("no PostgreSQL to test with: ", broken)
	}
	if broken != nil {
		t.Fatal("open test server: ", broken)
	}
	return url
}

func open() (string, error) {
	if u := os.Getenv("LIGHTWEB_TEST_POSTGRES"); u != "" {
		return u, nil
	}
	dir, err := folder()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if server, err = Start(ctx, dir); err != nil {
		return "", err
	}
	return server.ConnString(), nil
}

// Start starts a private PostgreSQL server in the folder dir. A program that runs tests calls
// Start and gives the server's URL to the tests.
func Start(ctx context.Context, dir string) (*embedded.Cluster, error) {
	c, err := embedded.Open(ctx, embedded.Config{Dir: dir, Buffers: buffers, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if err := hurry(ctx, c.ConnString()); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// hurry makes the shared server faster, and less safe. It turns off fsync, because most of the
// time to make and drop databases is spent waiting for the disk. A power failure may then lose the
// server's data. It also keeps the WAL small, because the WAL may be stored in memory.
func hurry(ctx context.Context, url string) error {
	conn, err := Open(url, "postgres")
	if err != nil {
		return err
	}
	for _, q := range []string{`ALTER SYSTEM SET fsync = off`, `ALTER SYSTEM SET max_wal_size = '256MB'`, `SELECT pg_reload_conf()`} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

// folder returns the folder of the shared cluster. If the folder is missing, it makes the folder.
// It refuses a folder that belongs to another user or that others may write to.
func folder() (string, error) {
	dir := filepath.Join(TempDir(), fmt.Sprintf("lightweb-test-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s is a link, somebody else's or open to others: remove it", dir)
	}
	return dir, nil
}

// Cluster is the type of a test's set of databases.
type Cluster = db.Cluster

// Acquainting is the type of MakeAcquaintances's parameter.
type Acquainting = db.Acquainting

// Connect opens a cluster with the configuration cfg. The cluster is closed when the test ends.
func Connect(t testing.TB, cfg db.Config) *Cluster {
	t.Helper()
	c, err := db.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal("open test databases: ", err)
	}
	t.Cleanup(c.Close)
	return c
}

// Run runs a statement in a database, over a connection of its own, outside any Cluster.
func Run(t testing.TB, database, query string, args ...any) {
	t.Helper()
	if _, err := Database(t, database).ExecContext(context.WithoutCancel(t.Context()), query, args...); err != nil { // in a cleanup, t's context has already ended
		t.Fatal(err)
	}
}

// New returns a cluster with its own databases. The databases are dropped when the test ends.
func New(t testing.TB) *Cluster {
	t.Helper()
	c, _ := Named(t)
	return c
}

// Named does the same as New, and also returns the configuration with which the cluster was
// opened. The configuration has the name of the instance database.
func Named(t testing.TB) (*Cluster, db.Config) {
	t.Helper()
	cfg := Config(t)
	c, err := db.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal("open test databases: ", err)
	}
	t.Cleanup(func() { destroy(t, c) })
	return c, cfg
}

// Config returns the configuration of a cluster with its own databases. A test that opens the
// cluster must drop the databases.
func Config(t testing.TB) db.Config {
	t.Helper()
	return db.Config{URL: URL(t), Types: types, Name: "t" + strings.ToLower(rand.Text()[:10]), Template: "lwtest-template-" + migrationsHash(),
		InstanceTemplate: "lwtest-instance-" + migrationsHash(), MaxConnections: 8, Migrate: true}
}

// migrationsHash returns a hash of the migrations. Checkouts with different migrations thus use
// different templates.
func migrationsHash() string {
	h := sha256.New()
	err := fs.WalkDir(migrations.FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := migrations.FS.ReadFile(path)
		h.Write([]byte(path))
		h.Write(b)
		return err
	})
	if err != nil {
		panic("dbtest: read embedded migrations: " + err.Error())
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

func destroy(t testing.TB, c *db.Cluster) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := c.Destroy(ctx); err != nil {
		t.Error("drop test databases: ", err)
	}
}

// User makes an active user with a database.
func User(t testing.TB, c *db.Cluster, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := c.Instance.Users.Reserve(ctx, u); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateUserDatabase(ctx, u); err != nil {
		t.Fatal(err)
	}
	if err := c.Instance.Users.Activate(ctx, u); err != nil && fault.KindOf(err) != fault.Conflict {
		t.Fatal(err)
	}
	return u
}

// handles holds the databases that Database has opened for running tests.
var handles sync.Map

type handle struct {
	test     testing.TB
	database string
}

// SQL returns u's database, for statements that package db has no function for.
func SQL(t testing.TB, c *db.Cluster, u vocab.Username) *sql.DB {
	t.Helper()
	row, err := c.Instance.Users.Find(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return Database(t, row.Database)
}

// AwaitLock waits until a transaction on u's database waits for another transaction. It fails the
// test if the channel done has a value before that.
func AwaitLock(t testing.TB, c *db.Cluster, u vocab.Username, done chan error) {
	t.Helper()
	on := SQL(t, c, u)
	for n := 0; n == 0 && len(done) == 0; {
		if err := on.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if len(done) > 0 {
		t.Error("it does not wait for the other transaction")
	}
}

// InstanceSQL returns the instance database of the cluster c. The user u must be one of c's users.
func InstanceSQL(t testing.TB, c *db.Cluster, u vocab.Username) *sql.DB {
	t.Helper()
	row, err := c.Instance.Users.Find(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return Database(t, strings.TrimSuffix(row.Database, "_"+u.String()))
}

// Open returns a database of the server at url. Some tests kill that server. So each connection is
// pinged before use, and a dead connection is replaced.
func Open(url, database string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url + " database=" + database)
	if err != nil {
		return nil, err
	}
	ping := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return true })
	return stdlib.OpenDB(*config, ping), nil
}

// Database returns the database with a name. Its connections are reused until the test ends,
// because opening a connection costs the server more than most queries do.
func Database(t testing.TB, database string) *sql.DB {
	t.Helper()
	key := handle{t, database}
	if d, is := handles.Load(key); is {
		return d.(*sql.DB)
	}
	d, err := Open(URL(t), database)
	if err != nil {
		t.Fatal(err)
	}
	handles.Store(key, d)
	t.Cleanup(func() {
		handles.Delete(key)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// types repeats the types that the registry of handlers has. This package cannot import the
// registry, because the registry is on a higher floor. The registry's tests compare the two.
var types = user.Types{
	Words: []string{"Create", "Update"}, Authored: []string{"Add", "Create", "Delete", "Update"},
	ShowObject: []string{"Announce", "Create", "Dislike", "EmojiReact", "Like", "QuoteRequest", "Update"},
	Ordered:    []string{"Announce", "Block", "Dislike", "EmojiReact", "Follow", "Like", "Offer"}, TakeBack: []string{"Delete", "Undo"},
	Relate: []string{"Accept", "Follow", "Offer", "Reject"}, Answer: []string{"Accept", "Reject"},
	Notify: []string{"Accept", "QuoteRequest"}, NotifyOwner: []string{"Announce", "Dislike", "EmojiReact", "Follow", "Like"}, NotifyNamed: []string{"Create", "Offer"},
}
