package db_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) {
	if cfg := os.Getenv(childConfig); cfg != "" {
		migrateAsChild(cfg)
	}
	dbtest.Main(tidy{m})
}

// tidy fails a run that leaves goroutines behind.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

var (
	quiet = slog.New(slog.DiscardHandler)
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

const (
	bob   vocab.ID = "https://peer.example/users/bob"
	carol vocab.ID = "https://other.example/users/carol"
)

// alice returns a cluster with a user.
func alice(t testing.TB) (*db.Cluster, vocab.Username) {
	t.Helper()
	c := dbtest.New(t)
	return c, dbtest.User(t, c, "alice")
}

// open opens a cluster as configured, which is closed when the test ends.
func open(t *testing.T, cfg db.Config) *db.Cluster {
	t.Helper()
	c, err := db.Open(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// destroyed drops at the end of the test what was made under cfg.
func destroyed(t *testing.T, cfg db.Config) db.Config {
	t.Cleanup(func() {
		cfg.Migrate = false
		c, err := db.Open(context.Background(), cfg, quiet)
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

// write runs work in a transaction that must succeed.
func write(t testing.TB, c *db.Cluster, u vocab.Username, work func(context.Context, *db.Tx) error) {
	t.Helper()
	if err := c.Write(t.Context(), u, work); err != nil {
		t.Fatal(err)
	}
}

// committed runs work in a transaction that must succeed, and returns what subscribers are to be
// told of it.
func committed(t testing.TB, c *db.Cluster, u vocab.Username, work func(context.Context, *db.Tx) error) db.Commit {
	t.Helper()
	commit, err := c.WriteTold(t.Context(), u, work)
	if err != nil || commit == nil {
		t.Fatalf("committed %v, %v", commit, err)
	}
	return *commit
}

// read is write for what changes nothing.
func read(t testing.TB, c *db.Cluster, u vocab.Username, work func(context.Context, *db.Tx) error) {
	t.Helper()
	if err := c.Read(t.Context(), u, work); err != nil {
		t.Fatal(err)
	}
}

// session opens a connection beside the cluster's.
func session(t testing.TB, database string) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = database
	conn, err := pgx.ConnectConfig(context.WithoutCancel(t.Context()), cfg) // also while cleaning up
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // a test may have had it killed
	return conn
}

// run executes a statement in a database, beside the cluster.
func run(t testing.TB, database, query string, args ...any) {
	t.Helper()
	if _, err := dbtest.Database(t, database).ExecContext(context.WithoutCancel(t.Context()), query, args...); err != nil { // also while cleaning up
		t.Fatal(err)
	}
}

// databaseOf returns where u's data lies.
func databaseOf(t testing.TB, c *db.Cluster, u vocab.Username) string {
	t.Helper()
	row, err := c.Instance.Users.Find(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return row.Database
}

// note is a Create of a Note by actor, the n-th thing of this test.
func note(actor vocab.ID, n int, published time.Time) (db.Activity, db.Object, db.FeedEntry) {
	object := vocab.ID(fmt.Sprintf("%s/notes/%d", actor, n))
	activity := object + "/activity"
	raw := map[string]any{"id": object, "type": "Note", "attributedTo": actor, "content": fmt.Sprintf("<p>note %d</p>", n), "to": []vocab.ID{vocab.Public}}
	return db.Activity{ID: uuid.Must(uuid.NewV7()), URI: activity, Direction: db.Inbound, Type: "Create", Actor: actor, Object: object, Published: published,
			Raw: mustJSON(map[string]any{"id": activity, "type": "Create", "actor": actor, "object": raw, "to": []vocab.ID{vocab.Public}})},
		db.Object{ID: uuid.Must(uuid.NewV7()), URI: object, Published: published, Raw: mustJSON(raw), Author: actor},
		db.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: activity, Actor: actor, Published: published}
}

// addNote stores a note with its Create and place in the feed.
func addNote(ctx context.Context, tx *db.Tx, actor vocab.ID, n int, published time.Time) error {
	a, o, f := note(actor, n, published)
	if err := tx.AddActivity(ctx, a); err != nil {
		return err
	}
	if _, err := tx.AddObject(ctx, o); err != nil {
		return err
	}
	return tx.AddFeedEntry(ctx, f)
}

// by returns ids as those of one actor.
func by(actor vocab.ID, ids ...vocab.ID) (all []db.Owned) {
	for _, id := range ids {
		all = append(all, db.Owned{ID: id, Actor: actor})
	}
	return all
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
