package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/fault"
)

// PostgreSQL's account can enter the data directory. Other accounts cannot list it. A directory
// that exists already keeps its mode.
func TestTheDataDirectoryIsPassedThroughAndNotListed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		mode os.FileMode // the mode of the folder that exists; 0 if none exists
		want os.FileMode
	}{{"new", 0, 0o711}, {"there", 0o755, 0o755}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(enginetest.Dir(t), "data")
			if tt.mode != 0 {
				if err := os.Mkdir(dir, tt.mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			ran := enginetest.MakeIn(t, dir).Run(t, "user", "create", "alice")
			if ran.Code == 69 {
				enginetest.Skip(t, "no PostgreSQL to test with:\n"+ran.Stderr)
			}
			if ran.Code != 0 {
				t.Fatalf("user create ended with %d: %s", ran.Code, ran.Stderr)
			}
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != tt.want {
				t.Errorf("the data directory has mode %04o, want %04o", got, tt.want)
			}
		})
	}
}

// Only commands that make the instance make its keys. After commands that only read, an instance
// can still be restored into the folder.
func TestKeysOfTheInstanceAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(enginetest.Dir(t), "data")
	keys := filepath.Join(dir, "instance", "keys")
	i := enginetest.MakeIn(t, dir)
	list := i.Run(t, "user", "list")
	if list.Code == 69 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+list.Stderr)
	}
	if _, err := os.Stat(keys); list.Code != 0 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("user list ended with %d (%s), and of the keys is known: %v; want 0, and that there are none", list.Code, list.Stderr, err)
	}
	if fetch := i.Run(t, "actor", "fetch", "http://127.0.0.1:1/nobody"); fetch.Code != 78 || !strings.Contains(fetch.Stderr, "no keys of the instance") {
		t.Errorf("actor fetch without keys ended with %d: %s", fetch.Code, fetch.Stderr)
	}
	if made := i.Run(t, "user", "create", "alice"); made.Code != 0 {
		t.Fatalf("user create ended with %d: %s", made.Code, made.Stderr)
	}
	before, err := os.ReadDir(keys)
	if err != nil || len(before) == 0 {
		t.Fatalf("user create left %v of keys, %v", before, err)
	}
	if err := os.RemoveAll(keys); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"user create bob", "serve"} {
		ran := i.Run(t, strings.Fields(line)...)
		if ran.Code != 78 || !strings.Contains(ran.Stderr, "no keys of the instance") || !strings.Contains(ran.Stderr, keys+" from a backup") {
			t.Errorf("%s without the keys that peers know ended with %d: %s", line, ran.Code, ran.Stderr)
		}
	}
	if _, err := os.Stat(keys); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keys were made in place of those that peers know: %v", err)
	}
	if list := i.Run(t, "user", "list"); list.Code != 0 || !strings.Contains(list.Stdout, "alice") || strings.Contains(list.Stdout, "bob") {
		t.Errorf("user list ended with %d: %s%s", list.Code, list.Stdout, list.Stderr)
	}
}

// A command makes the first user. Meanwhile another command has made the keys of the instance. The
// first command uses those keys.
func TestKeysThatAnotherCommandMadeMeanwhileAreUsed(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"user list", 0, ""}})
	instance, look := i.SQL(t, "lightweb"), i.SQL(t, "postgres")
	tx, err := instance.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // also releases the lock
	if _, err := tx.ExecContext(t.Context(), `LOCK TABLE users IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	made := make(chan enginetest.Ran)
	go func() { made <- i.Run(t, "user", "create", "bob") }()
	enginetest.Eventually(t, "the command looks for users", func() bool {
		var waits int
		err := look.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM users ORDER BY username'`).Scan(&waits)
		return err == nil && waits == 1
	})
	if err := actor.NewKeyring("", i.DataDir, i.URL).CreateInstance(); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `INSERT INTO users (username, state, database) VALUES ('alice', 'creating', 'lightweb_alice')`); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if ran := <-made; ran.Code != 0 {
		t.Errorf("user create bob, while alice was made, ended with %d: %s", ran.Code, ran.Stderr)
	}
}

// The service has the setting database.url, and the commands do not. The commands fail. They do
// not make an empty instance beside the one that is served.
func TestDatabasesThatAreElsewhereAreNotMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(enginetest.Dir(t), "data")
	served := enginetest.MakeIn(t, dir, "LIGHTWEB_DATABASE_URL="+startServer(t))
	if made := served.Run(t, "user", "create", "alice"); made.Code != 0 {
		t.Fatalf("user create ended with %d: %s", made.Code, made.Stderr)
	}
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	if taken := served.Run(t, "backup", file); taken.Code != 0 {
		t.Fatalf("backup ended with %d: %s", taken.Code, taken.Stderr)
	}
	bare := enginetest.MakeIn(t, dir, "LIGHTWEB_PUBLIC_URL="+served.URL)
	for _, line := range []string{"backup " + file + ".2", "db migrate", "db migrate --check", "user create bob", "user import --yes " + file,
		"restore --dry-run " + file, "restore --user alice " + file} {
		if ran := bare.Run(t, strings.Fields(line)...); ran.Code != 78 || !strings.Contains(ran.Stderr, "set database.url") {
			t.Errorf("%s without database.url ended with %d: %s", line, ran.Code, ran.Stderr)
		}
	}
	for _, path := range []string{file + ".2", filepath.Join(dir, "pg")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made: %v", path, err)
		}
	}
	// Older versions made this folder, because an instance did not record where its databases
	// are.
	if err := os.Mkdir(filepath.Join(dir, "pg"), 0o700); err != nil {
		t.Fatal(err)
	}
	if ran := bare.Run(t, "user", "list"); ran.Code != 78 || !strings.Contains(ran.Stderr, filepath.Join(dir, "instance", "elsewhere")) {
		t.Errorf("user list beside a private server ended with %d: %s", ran.Code, ran.Stderr)
	}
	if err := os.Remove(filepath.Join(dir, "pg")); err != nil {
		t.Fatal(err)
	}
	// This is the documented way from a PostgreSQL server back to a private cluster.
	if back := bare.Run(t, "restore", file); back.Code != 0 {
		t.Errorf("restore ended with %d: %s", back.Code, back.Stderr)
	}
	if list := bare.Run(t, "user", "list"); list.Code != 0 || !strings.Contains(list.Stdout, "alice") {
		t.Errorf("user list after the restore ended with %d: %s%s", list.Code, list.Stdout, list.Stderr)
	}
}

// The setting database.url names a server that has nothing of the instance: it was mistyped, or the
// restore there is still to come. Commands fail, and leave no trace that keeps the instance from
// being opened without the setting.
func TestAServerThatHasNothingOfTheInstanceIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(enginetest.Dir(t), "data")
	private := enginetest.MakeIn(t, dir)
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	for _, line := range []string{"user create alice", "backup " + file} {
		if ran := private.Run(t, strings.Fields(line)...); ran.Code != 0 {
			t.Fatalf("%s ended with %d: %s", line, ran.Code, ran.Stderr)
		}
	}
	moved := enginetest.MakeIn(t, dir, "LIGHTWEB_DATABASE_URL="+startServer(t), "LIGHTWEB_PUBLIC_URL="+private.URL)
	for _, line := range []string{"user list", "user create bob", "db migrate", "backup " + file + ".2"} {
		if ran := moved.Run(t, strings.Fields(line)...); ran.Code != 78 || !strings.Contains(ran.Stderr, "unset database.url") {
			t.Errorf("%s on an empty server ended with %d: %s", line, ran.Code, ran.Stderr)
		}
	}
	if list := private.Run(t, "user", "list"); list.Code != 0 || !strings.Contains(list.Stdout, "alice") {
		t.Errorf("user list on the private server ended with %d: %s%s", list.Code, list.Stdout, list.Stderr)
	}
	for _, line := range []string{"restore " + file, "user list"} {
		if ran := moved.Run(t, strings.Fields(line)...); ran.Code != 0 {
			t.Errorf("%s on the other server ended with %d: %s", line, ran.Code, ran.Stderr)
		}
	}
}

// startServer starts a separate PostgreSQL server that ends with the test. It returns the server's
// URL for database.url.
func startServer(t *testing.T) string {
	t.Helper()
	server, err := embedded.Open(t.Context(), embedded.Config{Dir: enginetest.Dir(t), Log: slog.New(slog.DiscardHandler)})
	if fault.KindOf(err) == fault.Unavailable {
		enginetest.Skip(t, "no PostgreSQL to test with: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	q := url.Values{}
	for _, word := range strings.Fields(server.ConnString()) {
		key, value, _ := strings.Cut(word, "=")
		q.Set(key, strings.Trim(value, "'"))
	}
	return "postgres:///?" + q.Encode()
}
