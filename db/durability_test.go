package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/postgres"
)

func TestCommitsWaitForTheDiskWhateverTheDatabasesAreSetTo(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{"off": "on", "local": "local"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			cfg := destroyed(t, dbtest.Config(t))
			alice := dbtest.User(t, open(t, cfg), "alice")
			for _, name := range []string{cfg.Name, cfg.Name + "_" + alice.String()} {
				run(t, "postgres", fmt.Sprintf(`ALTER DATABASE %q SET synchronous_commit = %s`, name, set))
			}
			var log bytes.Buffer
			c, err := db.Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			const show = `SHOW synchronous_commit`
			var ofUser, ofInstance string
			_, databases := c.Reach()
			conn, err := databases.Connect(t.Context(), databases.OfUser(alice)) // configured as the pool's connections are
			if err != nil {
				t.Fatal(err)
			}
			defer postgres.Shut(conn)
			err = errors.Join(conn.QueryRow(t.Context(), show).Scan(&ofUser), c.Instance.InTx(t.Context(), pgx.TxOptions{}, func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), show).Scan(&ofInstance)
			}))
			if err != nil || ofUser != want || ofInstance != want {
				t.Errorf("for alice it is %q, for the instance %q, %v; want %q", ofUser, ofInstance, err, want)
			}
			if err := c.Fit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if set == "off" && strings.Count(log.String(), "synchronous_commit is off") != 1 {
				t.Errorf("the log says: %s", &log)
			}
		})
	}
}
