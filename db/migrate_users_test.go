package db_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
	"github.com/lightweb/lightweb/migrations"
)

func migrateUsers(t *testing.T, c *db.Cluster, m db.Migration) db.MigrationReport {
	t.Helper()
	r, err := c.MigrateUsers(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same fails the test unless two reports are equal. It compares neither the texts of errors nor
// the hints nor the times.
func same(t *testing.T, what string, got, want db.MigrationReport) {
	t.Helper()
	want.Failed = len(want.Failures)
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(vocab.Username{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(db.MigrationReport{}, "Millis"), cmpopts.IgnoreFields(db.MigrationFailure{}, "Error", "Hint")); d != "" {
		t.Errorf("%s:\n%s", what, d)
	}
}

func TestOneUsersFailureDoesNotKeepTheOthersFromMigrating(t *testing.T) {
	t.Parallel()
	c, _, users := upgraded(t, "alice", "bob", "carol")
	was, is := dbtest.Schema(), dbtest.Schema()+1
	bob := users[1]
	run(t, databaseOf(t, c, bob), `CREATE TABLE extra (mine text)`)

	same(t, "what would be done", migrateUsers(t, c, db.Migration{DryRun: true}), db.MigrationReport{Target: is, Databases: 3, Migrated: 3, DryRun: true})
	usable(t, c, users[0], false, was)

	var steps []int
	failed := []db.MigrationFailure{{User: bob, Version: is, Dirty: true, SQLState: "42P07"}}
	r := migrateUsers(t, c, db.Migration{Concurrency: 2, Progress: func(done, all int) { steps = append(steps, done, all) }})
	same(t, "the first run", r, db.MigrationReport{Target: is, Databases: 3, Migrated: 2, Failures: failed})
	if d := cmp.Diff([]int{1, 3, 2, 3, 3, 3}, steps); d != "" {
		t.Error("progress: ", d)
	}
	if words := r.Failures[0].Error; !strings.Contains(words, `relation "extra" already exists`) || strings.Contains(words, "ALTER") {
		t.Errorf("the failure says %q; want the server's words without the file", words)
	}
	usable(t, c, users[0], true, is)
	usable(t, c, bob, false, was)
	usable(t, c, users[2], true, is)

	r = migrateUsers(t, c, db.Migration{})
	failed[0].SQLState = ""
	same(t, "a run without repair", r, db.MigrationReport{Target: is, Databases: 3, Unchanged: 2, Failures: failed})
	if hint := r.Failures[0].Hint; hint != "lightweb db migrate bob --repair" {
		t.Errorf("hint %q", hint)
	}
	failed[0].SQLState = "42P07"
	same(t, "repaired in vain", migrateUsers(t, c, db.Migration{Repair: true}), db.MigrationReport{Target: is, Databases: 3, Unchanged: 2, Failures: failed})

	run(t, databaseOf(t, c, bob), `DROP TABLE extra`)
	same(t, "what repair would do", migrateUsers(t, c, db.Migration{Repair: true, DryRun: true}), db.MigrationReport{Target: is, Databases: 3, Migrated: 1, Unchanged: 2, DryRun: true})
	same(t, "repaired", migrateUsers(t, c, db.Migration{Users: []vocab.Username{bob}, Repair: true}), db.MigrationReport{Target: is, Databases: 1, Migrated: 1})
	usable(t, c, bob, true, is)
}

func TestFailFastBeginsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	c, _, users := upgraded(t, "alice", "bob")
	run(t, databaseOf(t, c, users[0]), `CREATE TABLE extra (mine text)`)
	r := migrateUsers(t, c, db.Migration{FailFast: true})
	if len(r.Failures) != 1 || r.Migrated != 0 {
		t.Errorf("report %+v, want one failure and nothing migrated", r)
	}
	usable(t, c, users[1], false, dbtest.Schema())
}

func TestWhoCannotBeMigratedIsSaidBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	c, cfg, users := upgraded(t, "alice", "bob")
	if err := c.Instance.Users.SetState(t.Context(), users[1], instance.UserDeleted); err != nil {
		t.Fatal(err)
	}
	stranger, err := vocab.ParseUsername("stranger")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []vocab.Username{stranger, users[1]} {
		if _, err := c.MigrateUsers(t.Context(), db.Migration{Users: []vocab.Username{users[0], u}}); fault.KindOf(err) != fault.NoUser {
			t.Errorf("%s: %v, want NoUser", u, err)
		}
	}
	run(t, cfg.Name, `UPDATE users SET schema_version = 99 WHERE username = 'alice'`)
	if _, err := c.MigrateUsers(t.Context(), db.Migration{}); fault.KindOf(err) != fault.Config {
		t.Errorf("with a newer database: %v, want Config", err)
	}
	run(t, cfg.Name, `UPDATE users SET schema_version = 0 WHERE username = 'alice'`) // a wrong version: the database has another one
	database := databaseOf(t, c, users[0])
	run(t, database, `UPDATE schema_migrations SET version = 98, dirty = true`)
	for _, m := range []db.Migration{{Repair: true, DryRun: true}, {Repair: true}} {
		same(t, "what a newer release began", migrateUsers(t, c, m), db.MigrationReport{Target: dbtest.Schema() + 1, Databases: 1, DryRun: m.DryRun,
			Failures: []db.MigrationFailure{{User: users[0], Version: 98, Dirty: true}}})
	}
	run(t, database, fmt.Sprintf(`UPDATE schema_migrations SET version = %d, dirty = false`, dbtest.Schema()))
	run(t, cfg.Name, `UPDATE users SET schema_version = 0 WHERE username = 'alice'`)
	same(t, "at last", migrateUsers(t, c, db.Migration{}), db.MigrationReport{Target: dbtest.Schema() + 1, Databases: 1, Migrated: 1})
	usable(t, c, users[0], true, dbtest.Schema()+1)
}

func TestAUserWhoIsStillBeingMadeHasTheNextSchemaToo(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	old := open(t, cfg)
	half, err := vocab.ParseUsername("half")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Instance.Users.Reserve(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	c := open(t, cfg.WithMigrations(nextRelease()))
	same(t, "without a database", migrateUsers(t, c, db.Migration{}), db.MigrationReport{Target: dbtest.Schema() + 1})
	if err := old.CreateUserDatabase(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	usable(t, c, dbtest.User(t, c, "half"), true, dbtest.Schema()+1)
}

func TestStatusSaysWhatIsWrongWithWhichDatabase(t *testing.T) {
	t.Parallel()
	c, cfg, users := upgraded(t, "alice", "bob", "carol", "dora")
	migrateUsers(t, c, db.Migration{Users: users[:1]})
	run(t, databaseOf(t, c, users[2]), `UPDATE schema_migrations SET dirty = true`)
	run(t, "postgres", `DROP DATABASE `+databaseOf(t, c, users[3]))
	st, err := c.Status(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if st.Server == "" || st.Instance.Database != cfg.Name || st.Instance.Version < 1 || st.Target != dbtest.Schema()+1 || len(st.Users) != len(users) {
		t.Fatalf("Status = %+v", st)
	}
	for i, want := range []string{"", "lightweb db migrate bob", "lightweb db migrate carol --repair", "lightweb restore FILE --user NAME, out of a backup"} {
		if u := st.Users[i]; u.User != users[i] || u.Usable != (want == "") || u.Usable != (u.Error == "") || u.Hint != want {
			t.Errorf("status of %s: %+v; want the hint %q", users[i], u, want)
		}
	}
}

// blocked locks u's feed table. The next migration then waits until letGo is called.
func blocked(t *testing.T, c *db.Cluster, u vocab.Username) (letGo func()) {
	t.Helper()
	return dbtest.Hold(t, dbtest.SQL(t, c, u), `LOCK TABLE feed`)
}

// waiter waits until a process of the PostgreSQL server waits for a lock in a database. It returns
// the id of that process. The parameter kind is the type of the lock, such as relation.
func waiter(t *testing.T, database, kind string) (pid int) {
	t.Helper()
	conn := session(t, "postgres")
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); {
		err := conn.QueryRow(t.Context(), `SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE NOT granted AND datname = $1 AND locktype = $2`, database, kind).Scan(&pid)
		if err == nil {
			return pid
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
	}
	t.Fatal("nobody waits")
	return 0
}

func TestTwoDoNotMigrateAtOnce(t *testing.T) {
	t.Parallel()
	c, cfg, users := upgraded(t, "alice")
	letGo := blocked(t, c, users[0])
	done := make(chan db.MigrationReport)
	var failed atomic.Value
	go func() {
		r, err := c.MigrateUsers(t.Context(), db.Migration{})
		if err != nil {
			failed.Store(err)
		}
		done <- r
	}()
	waiter(t, databaseOf(t, c, users[0]), "relation")
	other := open(t, cfg.WithMigrations(nextRelease()))
	_, err := other.MigrateUsers(t.Context(), db.Migration{})
	if fault.KindOf(err) != fault.Busy || !strings.Contains(err.Error(), fmt.Sprintf("another 'lightweb db migrate' runs (process %d on ", os.Getpid())) {
		t.Errorf("the second one ends with %v, want Busy and who the first is", err)
	}
	if r := migrateUsers(t, other, db.Migration{DryRun: true}); r.Databases != 1 {
		t.Errorf("looking beside it: %+v", r)
	}
	letGo()
	same(t, "the first one", <-done, db.MigrationReport{Target: dbtest.Schema() + 1, Databases: 1, Migrated: 1})
	if err := failed.Load(); err != nil {
		t.Error(err)
	}
	same(t, "the second one afterwards", migrateUsers(t, other, db.Migration{}), db.MigrationReport{Target: dbtest.Schema() + 1, Databases: 1, Unchanged: 1})
}

// childConfig names the environment variable that holds the db.Config as JSON. If the variable is
// set, the test program only migrates users.
const childConfig = "LIGHTWEB_TEST_MIGRATE"

func migrateAsChild(text string) {
	var cfg db.Config
	err := json.Unmarshal([]byte(text), &cfg)
	if err == nil {
		var c *db.Cluster
		if c, err = db.Open(context.Background(), cfg.WithMigrations(nextRelease()), quiet); err == nil {
			_, err = c.MigrateUsers(context.Background(), db.Migration{})
		}
	}
	fmt.Fprintln(os.Stderr, "the child was not killed:", err)
	os.Exit(1)
}

// killed migrates in another process, and kills that process while u's database is being changed.
// It returns the id of the PostgreSQL process that still runs the change.
func killed(t *testing.T, c *db.Cluster, cfg db.Config, u vocab.Username) (pid int) {
	t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childConfig+"="+string(text))
	child.Stderr = &stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid = waiter(t, databaseOf(t, c, u), "relation")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("the child ended with %v: %s", err, &stderr)
	}
	awaitNone(t, "session with the child's lock", `application_name LIKE $1`, fmt.Sprintf("%%, process %d on %%", child.Process.Pid))
	return pid
}

// awaitEnd waits until a process of the PostgreSQL server has ended. Its transaction is then
// committed or rolled back.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	awaitNone(t, "process", `pid = $1`, pid)
}

// awaitNone waits until no session of the PostgreSQL server meets an SQL condition.
func awaitNone(t *testing.T, what, condition string, arg any) {
	t.Helper()
	conn := session(t, "postgres")
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); {
		var is bool
		if err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE `+condition+`)`, arg).Scan(&is); err != nil {
			t.Fatal(err)
		}
		if !is {
			return
		}
	}
	t.Fatalf("the server's %s does not end", what)
}

func TestAMigrationThatWasKilledIsHealedByAnother(t *testing.T) {
	t.Parallel()
	is := dbtest.Schema() + 1
	t.Run("when the server has finished it", func(t *testing.T) {
		t.Parallel()
		c, cfg, users := upgraded(t, "alice")
		letGo := blocked(t, c, users[0])
		pid := killed(t, c, cfg, users[0])
		// While the PostgreSQL server still runs a migration, a repair does not clear the
		// mark of that migration.
		r := migrateUsers(t, c, db.Migration{Repair: true})
		if len(r.Failures) != 1 || !strings.Contains(r.Failures[0].Error, "the server is still at a change of database") {
			t.Errorf("beside the server: %+v, want that it is busy", r)
		}
		letGo()
		awaitEnd(t, pid)
		same(t, "run again", migrateUsers(t, c, db.Migration{}), db.MigrationReport{Target: is, Databases: 1, Unchanged: 1})
		usable(t, c, users[0], true, is)
	})
	t.Run("when the server was stopped too", func(t *testing.T) {
		t.Parallel()
		c, cfg, users := upgraded(t, "alice")
		letGo := blocked(t, c, users[0])
		pid := killed(t, c, cfg, users[0])
		run(t, "postgres", `SELECT pg_terminate_backend($1)`, pid)
		letGo()
		awaitEnd(t, pid)
		same(t, "run again", migrateUsers(t, c, db.Migration{}), db.MigrationReport{Target: is, Databases: 1,
			Failures: []db.MigrationFailure{{User: users[0], Version: is, Dirty: true}}})
		same(t, "repaired", migrateUsers(t, c, db.Migration{Repair: true}), db.MigrationReport{Target: is, Databases: 1, Migrated: 1})
		usable(t, c, users[0], true, is)
	})
}

func TestADirtyInstanceIsRepairedWhenAsked(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	if err := c.MigrateDown(cfg.Name, "instance"); err != nil {
		t.Fatal(err)
	}
	run(t, cfg.Name, `INSERT INTO schema_migrations VALUES (1, true)`)
	if _, err := db.Open(t.Context(), cfg, quiet); !schema.IsBehind(err) {
		t.Errorf("Open without repair = %v", err)
	}
	cfg.Repair = true
	if _, err := open(t, cfg).Instance.Users.All(t.Context()); err != nil {
		t.Error(err)
	}
}

// The engine promises that a failed migration changed nothing. So each file of migrations must be
// one transaction.
func TestEveryMigrationIsOneTransaction(t *testing.T) {
	t.Parallel()
	alone := regexp.MustCompile(`(?im)^[^-\n]*\bCONCURRENTLY\b|^\s*(BEGIN|COMMIT|ROLLBACK)\s*;|^\s*VACUUM\b`)
	for _, set := range []string{"user", "instance"} {
		names, err := fs.Glob(migrations.FS, set+"/*.up.sql")
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			if prefix := fmt.Sprintf("%s/%04d_", set, i+1); !strings.HasPrefix(name, prefix) {
				t.Errorf("%s: the versions of a set are 1, 2, 3 and so on; want %s", name, prefix)
			}
			b, err := migrations.FS.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if found := alone.FindString(string(b)); found != "" {
				t.Errorf("%s: %q does not go together with being one transaction", name, found)
			}
		}
	}
}
