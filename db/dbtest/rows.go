package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Tidy runs a package's tests, and fails if goroutines are left after them.
type Tidy struct{ *testing.M }

// Run runs the tests.
func (m Tidy) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// Name parses a username. The user does not have to exist.
func Name(t testing.TB, s string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Alice returns a new cluster with the user alice.
func Alice(t testing.TB) (*db.Cluster, vocab.Username) {
	t.Helper()
	c := New(t)
	return c, User(t, c, "alice")
}

// Write runs work() in a transaction on u's database. The transaction must succeed.
func Write(t testing.TB, c *db.Cluster, u vocab.Username, work func(context.Context, *user.Tx) error) {
	t.Helper()
	if err := c.Write(t.Context(), u, work); err != nil {
		t.Fatal(err)
	}
}

// Read does the same as Write, for a work() that changes nothing.
func Read(t testing.TB, c *db.Cluster, u vocab.Username, work func(context.Context, *user.Tx) error) {
	t.Helper()
	if err := c.Read(t.Context(), u, work); err != nil {
		t.Fatal(err)
	}
}

// Session opens a connection that does not belong to a Cluster. The connection is closed when the
// test ends.
func Session(t testing.TB, database string) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Database = database
	conn, err := pgx.ConnectConfig(context.WithoutCancel(t.Context()), cfg) // in a cleanup, t's context has already ended
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // fails if the test has killed the connection
	return conn
}

// DatabaseOf returns the name of u's database.
func DatabaseOf(t testing.TB, c *db.Cluster, u vocab.Username) string {
	t.Helper()
	row, err := c.Instance.Users.Find(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return row.Database
}

// Number returns the number that a query selects.
func Number(t *testing.T, database, query string) (n int64) {
	t.Helper()
	conn := Session(t, database)
	if err := errors.Join(conn.QueryRow(t.Context(), query).Scan(&n), conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

// Rows returns the rows of a query, each as a line of text.
func Rows(t *testing.T, database, query string) (lines []string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn := Session(t, database)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT r::text FROM (`+query+`) AS r`)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(query, ": ", err)
	}
	return lines
}

// ActorOf returns an actor whose id is the parameter id. The JSON in the parameter fields is added
// to the actor's document. It must begin with a comma.
func ActorOf(t testing.TB, id vocab.ID, fields string) *vocab.Actor {
	t.Helper()
	a, err := vocab.ParseActor([]byte(`{"id":"` + string(id) + `","type":"Person","preferredUsername":"x","inbox":"` + string(id) + `/inbox"` + fields + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Schema returns the newest version of users' databases that this binary knows.
func Schema() int { return schema.New(nil, schema.Config{}).Latest(schema.User) }

// Usable fails the test unless two conditions hold. First, c can use u's database if the parameter
// want is true, and cannot if it is false. Second, the instance database stores the parameter
// version as u's schema version.
func Usable(t *testing.T, c *db.Cluster, u vocab.Username, want bool, version int) {
	t.Helper()
	err := c.Read(t.Context(), u, func(context.Context, *user.Tx) error { return nil })
	row, rowErr := c.Instance.Users.Find(t.Context(), u)
	if (err == nil) != want || rowErr != nil || row.SchemaVersion != version {
		t.Errorf("%s: %v, schema_version %d, %v; want it usable %t at %d", u, err, row.SchemaVersion, rowErr, want, version)
	}
}

// Destroyed returns cfg. At the end of the test it drops all databases of the instance cfg.
func Destroyed(t *testing.T, cfg db.Config) db.Config {
	t.Cleanup(func() {
		cfg.Migrate = false
		c, err := db.Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
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

// Note returns three rows to store: the Create of a Note by the actor, the Note, and the entry in
// the feed. The parameter n makes the ids of the rows unique.
func Note(actor vocab.ID, n int, published time.Time) (user.Activity, user.Object, user.FeedEntry) {
	object := vocab.ID(fmt.Sprintf("%s/notes/%d", actor, n))
	activity := object + "/activity"
	raw := map[string]any{"id": object, "type": "Note", "attributedTo": actor, "content": fmt.Sprintf("<p>note %d</p>", n), "to": []vocab.ID{vocab.Public}}
	return user.Activity{ID: uuid.Must(uuid.NewV7()), URI: activity, Direction: user.Inbound, Type: vocab.Create, Actor: actor, Object: object, Published: published,
			Raw: mustJSON(map[string]any{"id": activity, "type": vocab.Create, "actor": actor, "object": raw, "to": []vocab.ID{vocab.Public}})},
		user.Object{ID: uuid.Must(uuid.NewV7()), URI: object, Published: published, Raw: mustJSON(raw), Author: actor},
		user.FeedEntry{ID: uuid.Must(uuid.NewV7()), Activity: activity, Actor: actor, Published: published}
}

// AddNote stores the rows that Note returns.
func AddNote(ctx context.Context, tx *user.Tx, actor vocab.ID, n int, published time.Time) error {
	a, o, f := Note(actor, n, published)
	if err := tx.Activities.Add(ctx, a); err != nil {
		return err
	}
	if _, err := tx.Objects.Add(ctx, o); err != nil {
		return err
	}
	return tx.Feed.Add(ctx, f)
}

// By returns one user.Owned for each of the ids, with the actor as the owner.
func By(actor vocab.ID, ids ...vocab.ID) (all []user.Owned) {
	for _, id := range ids {
		all = append(all, user.Owned{ID: id, Actor: actor})
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
