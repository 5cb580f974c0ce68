package enginetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/embedded"
	"github.com/lightweb/lightweb/engine/enginetest/keytest"
	"github.com/lightweb/lightweb/engine/fault"
)

// thrifty has settings with which PostgreSQL uses little memory and disk, because many servers run
// in parallel. It turns fsync off, because no server of a test has to survive a power failure.
const thrifty = "shared_buffers = 64MB\nfsync = off\nmax_wal_size = 256MB\n"

// prepared makes a data directory as the first start of an engine does, but without the instance's
// keys. The directory has a cluster with the instance database and the template of users'
// databases. prepared returns the folder of the cluster, or "" if PostgreSQL is missing.
var prepared = sync.OnceValues(func() (pg string, err error) {
	dir := filepath.Join(folder, "prepared")
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	server, err := embedded.Open(ctx, embedded.Config{Dir: dir, Log: log})
	if fault.KindOf(err) == fault.Unavailable {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c, err := db.Open(ctx, db.Config{URL: server.ConnString(), Migrate: true}, log)
	if err == nil {
		c.Close()
	}
	if err := errors.Join(err, server.Close(ctx)); err != nil {
		return "", err
	}
	pg = filepath.Join(dir, "pg")
	conf, err := os.OpenFile(filepath.Join(pg, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = conf.WriteString(thrifty)
	return pg, errors.Join(err, conf.Close())
})

// furnish copies the prepared cluster into a data directory, because making a cluster takes
// longer than most tests.
func furnish(t testing.TB, dir string) {
	t.Helper()
	pg, err := prepared()
	if err != nil {
		t.Fatal("prepare a PostgreSQL cluster: ", err)
	}
	if pg == "" {
		return // the engine will report at its start that PostgreSQL is missing
	}
	if out, err := exec.Command("cp", "-a", pg, dir).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("copy the prepared PostgreSQL cluster: %w\n%s", err, out))
	}
}

// lendKey lends the instance of a furnished data directory its RSA key. It lends none if
// PostgreSQL is missing, because an engine takes keys without a cluster for a lost database.
func lendKey(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "pg")); err == nil {
		keytest.Lend(t, filepath.Join(dir, "instance", "keys"))
	}
}
