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
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// The engine fulfils a wish in the user's database, and removes it from the instance's.
func TestABackupHoldsAWishThatIsFulfilledMeanwhile(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	alice := dbtest.User(t, c, "alice")
	wish := dbinstance.Wish{User: alice, Kind: dbinstance.WishBlock, Account: "eve@x.example", Host: "x.example"}
	if _, err := c.Instance.Wishes.Add(t.Context(), alice, []dbinstance.Wish{wish}, time.Now()); err != nil {
		t.Fatal(err)
	}
	held, err := dbtest.SQL(t, c, alice).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.ExecContext(t.Context(), `LOCK TABLE activities`); err != nil {
		t.Fatal(err)
	}
	dir, done, written := t.TempDir(), make(chan error, 1), &bytes.Buffer{}
	backups := Backups{&instance.Instance{DB: c, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Registry: registry.New(dir, filepath.Join(dir, "users"), slog.New(slog.DiscardHandler)), Keys: actor.NewKeyring(filepath.Join(dir, "users"), dir, "https://here.example")}}
	go func() {
		_, err := backups.Write(context.WithoutCancel(t.Context()), written, BackupOptions{})
		done <- err
	}()
	dbtest.AwaitLock(t, c, alice, done)
	if err := c.Instance.Wishes.Remove(t.Context(), wish); err != nil {
		t.Fatal(err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(t, written.Bytes(), archive.Name{User: alice, Kind: archive.Known, Item: "wishes"}); !strings.Contains(got, wish.Account) {
		t.Errorf("the backup has the wishes %q, want that for %s", got, wish.Account)
	}
}

// rowsOf returns the rows that an archive has under a name.
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
