package engine_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A user's database is dropped. Only that user is unavailable. Activities for the user wait, and
// an administrator can drop them.
func TestADatabaseThatIsGoneConcernsItsUserOnly(t *testing.T) {
	t.Parallel()
	c := newCrash(t, rand.New(rand.NewPCG(3, 0)), enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"))
	lost, rest := c.users[0], c.users[1:]
	if _, err := c.home.SQL(t, "postgres").ExecContext(t.Context(), `DROP DATABASE lightweb_`+lost.Name+` WITH (FORCE)`); err != nil {
		t.Fatal(err)
	}
	const all = 20
	for n := range all {
		id := fmt.Sprint(c.authors[0].ID, "/activities/gone-", n)
		doc := vocab.Doc{"id": id, "type": "Create", "actor": string(c.authors[0].ID), "to": []any{string(vocab.Public)},
			"object": c.note(c.authors[0], fmt.Sprint("gone-", n), string(vocab.Public))}
		if status := c.post(t, c.authors[0], c.home.URL+"/inbox", doc.JSON()); status != http.StatusAccepted {
			t.Fatalf("a post for everybody was answered %d, want 202", status)
		}
	}
	own := vocab.Doc{"id": fmt.Sprint(c.authors[0].ID, "/activities/own"), "type": "Like", "actor": string(c.authors[0].ID), "object": c.posts[0]}
	if status := c.post(t, c.authors[0], lost.ID+"/inbox", own.JSON()); status != http.StatusAccepted {
		t.Errorf("what came to the user's own inbox was answered %d, want 202: it waits in the journal", status)
	}
	for _, u := range rest {
		enginetest.Eventually(t, u.Name+" has everything", func() bool {
			return u.Column(t, `SELECT count(*) FROM feed WHERE activity_uri LIKE '%/gone-%'`)[0] == fmt.Sprint(all)
		})
	}
	waits := func() (n int) {
		if err := c.home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM intake_waiting WHERE username = $1`, lost.Name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := waits(); n != all+1 {
		t.Errorf("%d activities wait, want %d", n, all+1)
	}
	if got := lost.Ask(t, http.MethodGet, "/api/feed?feed=main", nil); got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("the user's feed was answered %d, want 503 with Retry-After", got.Status)
	}
	if log := c.home.Log(); !strings.Contains(log, `"msg":"user stalled"`) || !strings.Contains(log, "restore") {
		t.Error("the log does not say that the user is parked, and that the database has to be restored")
	}
	dropped := c.home.Run(t, "inbox", "drop", lost.Name, "--state", "waiting", "--yes")
	if dropped.Code != 0 || waits() != 0 {
		t.Errorf("inbox drop ended with %d %s, and %d wait; want 0 and none", dropped.Code, dropped.Stderr, waits())
	}
	enginetest.Eventually(t, "the journal is empty", func() bool {
		var left int
		err := c.home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM intake`).Scan(&left)
		return err == nil && left == 0
	})
}

// PostgreSQL restarts with fewer connections than the engine may use, and refuses further
// connections. Every accepted activity is kept.
func TestNothingAcceptedIsLostWhenPostgreSQLTakesNoMoreConnections(t *testing.T) {
	t.Parallel()
	c := newCrash(t, rand.New(rand.NewPCG(4, 0)), enginetest.Start(t, "LIGHTWEB_LOG_LEVEL=info"))
	c.within = crashActivities / 4
	pid := c.home.Postmaster()
	for _, setting := range []string{`max_wal_senders = 0`, `max_connections = 14`} {
		if _, err := c.home.SQL(t, "postgres").ExecContext(t.Context(), `ALTER SYSTEM SET `+setting); err != nil {
			t.Fatal(err)
		}
	}
	c.round(t, 0, func(func()) {
		c.stop(t, pid, syscall.SIGINT)
		enginetest.Eventually(t, "the server is full", func() bool { return strings.Contains(c.home.Log(), "server took no more connections") })
		// The checks need connections, too. So the test removes the setting in the file
		// and not by a connection.
		if err := os.WriteFile(filepath.Join(c.home.DataDir, "pg", "postgresql.auto.conf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(c.home.Postmaster(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	})
}
