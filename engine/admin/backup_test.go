package admin

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// backupsOf returns the Backups of an instance. The instance has the databases of c and no files.
func backupsOf(t *testing.T, c *dbtest.Cluster) Backups {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	users := filepath.Join(dir, "users")
	return Backups{&instance.Instance{DB: c, Now: time.Now, Log: log, Registry: registry.New(dir, users, log), Keys: actor.NewKeyring(users, dir, "https://here.example")}}
}

// While a backup runs, the engine fulfils a wish: it writes to the user's database, and removes
// the wish from the instance database. The backup contains the wish.
func TestABackupHoldsAWishThatIsFulfilledMeanwhile(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	wish := dbinstance.Wish{User: alice, Kind: dbinstance.WishBlock, Account: "eve@x.example", Host: "x.example"}
	if _, err := c.Instance.Wishes.Add(t.Context(), alice, []dbinstance.Wish{wish}, time.Now()); err != nil {
		t.Fatal(err)
	}
	release := dbtest.Hold(t, dbtest.SQL(t, c, alice), `LOCK TABLE activities`)
	done, written, backups := make(chan error, 1), &bytes.Buffer{}, backupsOf(t, c)
	go func() {
		_, err := backups.Write(context.WithoutCancel(t.Context()), written, BackupOptions{})
		done <- err
	}()
	dbtest.AwaitLock(t, c, alice, done)
	if err := c.Instance.Wishes.Remove(t.Context(), wish); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, written.Bytes(), archive.Name{User: alice, Kind: archive.Known, Item: "wishes"}); !strings.Contains(got, wish.Account) {
		t.Errorf("the backup has the wishes %q, want that for %s", got, wish.Account)
	}
}

// rowsOf returns the rows of one entry of an archive.
func rowsOf(t *testing.T, written []byte, name archive.Name) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	if err := os.WriteFile(path, written, 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var rows strings.Builder
	err = a.Each(t.Context(), func(n archive.Name, content io.Reader) error {
		if n != name {
			return nil
		}
		_, err := io.Copy(&rows, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows.String()
}

func TestADryRunTellsOfDatabasesThatItCouldNotDrop(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	dbtest.User(t, c, "alice")
	backups, path := backupsOf(t, c), filepath.Join(t.TempDir(), "backup.tar.gz")
	if _, err := backups.WriteFile(t.Context(), path, BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	mark := func(isTemplate string) {
		dbtest.Run(t, "postgres", `ALTER DATABASE "`+cfg.Name+`-restoring" IS_TEMPLATE `+isTemplate)
	}
	marked := false
	r, err := backups.Restore(t.Context(), path, RestoreOptions{DryRun: true, Progress: func(int, int) {
		if !marked { // PostgreSQL refuses to drop a template
			mark("true")
			marked = true
		}
	}})
	if fault.KindOf(err) != fault.Partial || r.Users != 1 || !r.DryRun {
		t.Errorf("Restore = %+v, %v; want the report, and Partial", r, err)
	}
	mark("false")
	if _, err := backups.Restore(t.Context(), path, RestoreOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if left := dbtest.Rows(t, "postgres", `SELECT datname FROM pg_database WHERE datname = '`+cfg.Name+`-restoring'`); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}
