package db_test

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/migrations"
)

func TestManyOpenAtOnceAndMakeEverythingOnce(t *testing.T) {
	t.Parallel()
	cfg := dbtest.Config(t)
	cfg.Template, cfg.InstanceTemplate = "", "" // without a template, Open runs the migrations
	template := fmt.Sprintf("%s-template-%d", cfg.Name, dbtest.Schema())
	destroyed(t, cfg)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			c, err := db.Open(t.Context(), cfg, quiet)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := c.Instance.Users.All(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	conn := session(t, "postgres")
	rows, err := conn.Query(t.Context(), `SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY 1`, cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want := []string{cfg.Name, template}; err != nil || !slices.Equal(got, want) {
		t.Errorf("databases %v, %v; want %v", got, err, want)
	}
	var allowed bool
	if err := conn.QueryRow(t.Context(), `SELECT datallowconn FROM pg_database WHERE datname = $1`, template).Scan(&allowed); err != nil || allowed {
		t.Errorf("the template takes connections: %t, %v", allowed, err)
	}
}

func TestAHalfMadeInstanceIsMadeAnew(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	cfg.InstanceTemplate, cfg.Migrate = "", false
	run(t, "postgres", `CREATE DATABASE "`+cfg.Name+`-building"`)
	run(t, cfg.Name+"-building", `CREATE TABLE users (oops int)`)
	if n, err := open(t, cfg).Instance.Users.CountActive(t.Context()); n != 0 || err != nil {
		t.Errorf("CountUsers = %d, %v", n, err)
	}
}

func TestARoleThatMayOnlyCreateDatabasesIsEnough(t *testing.T) {
	t.Parallel()
	cfg := dbtest.Config(t)
	role := cfg.Name + "_plain"
	run(t, "postgres", `CREATE ROLE `+role+` CREATEDB`)
	t.Cleanup(func() { run(t, "postgres", `DROP ROLE `+role) })
	cfg.Template, cfg.InstanceTemplate = "", ""
	destroyed(t, cfg)
	option := " options='-c role=" + role + "'"
	if strings.Contains(cfg.URL, "://") {
		option = "?options=" + url.QueryEscape("-c role="+role)
		if strings.Contains(cfg.URL, "?") {
			option = "&" + option[1:]
		}
	}
	cfg.URL += option
	c := open(t, cfg)
	write(t, c, dbtest.User(t, c, "alice"), func(context.Context, *user.Tx) error { return nil })
}

func TestAnInstanceSchemaThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, spoil, hint string }{
		{"ahead", `UPDATE schema_migrations SET version = 9999`, "newer lightweb"},
		{"dirty", `UPDATE schema_migrations SET dirty = true`, "lightweb db migrate --repair"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := dbtest.Config(t)
			open(t, cfg).Close()
			t.Cleanup(func() { run(t, "postgres", `DROP DATABASE `+cfg.Name) })
			run(t, cfg.Name, tt.spoil)
			for _, cfg.Migrate = range []bool{false, true} {
				_, err := db.Open(t.Context(), cfg, quiet)
				if fault.KindOf(err) != fault.Config || !strings.Contains(fault.Hint(err), tt.hint) {
					t.Errorf("Open with migrate %t = %v, hint %q; want Config and %q", cfg.Migrate, err, fault.Hint(err), tt.hint)
				}
			}
		})
	}
}

func TestAnInstanceSchemaThatIsBehindIsRefusedOrMigrated(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	if err := c.MigrateDown(cfg.Name, "instance"); err != nil {
		t.Fatal(err)
	}
	cfg.Migrate = false
	if _, err := db.Open(t.Context(), cfg, quiet); fault.KindOf(err) != fault.Config || !strings.Contains(fault.Hint(err), "db migrate") {
		t.Errorf("Open = %v, hint %q; want Config that names the command", err, fault.Hint(err))
	}
	cfg.Migrate = true
	if _, err := open(t, cfg).Instance.Users.All(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDownMigrationsUndoTheUpOnes(t *testing.T) {
	t.Parallel()
	cfg := destroyed(t, dbtest.Config(t))
	c := open(t, cfg)
	user := databaseOf(t, c, dbtest.User(t, c, "alice"))
	for _, s := range []struct{ database, set string }{{cfg.Name, "instance"}, {user, "user"}} {
		before := schemaOf(t, s.database)
		if err := c.MigrateDown(s.database, s.set); err != nil {
			t.Fatal(err)
		}
		if left := schemaOf(t, s.database); len(left) != 2 { // only the table schema_migrations and its index stay
			t.Errorf("%s: %v is left", s.set, left)
		}
		if err := c.MigrateUp(t.Context(), s.database, s.set); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, schemaOf(t, s.database)); d != "" {
			t.Errorf("%s: down and up again is not the same:\n%s", s.set, d)
		}
	}
}

// schemaOf returns the tables, indexes and constraints of a database, as definitions.
func schemaOf(t *testing.T, database string) []string {
	t.Helper()
	conn := session(t, database)
	defer func() { _ = conn.Close(t.Context()) }() // no statement is unfinished
	rows, err := conn.Query(t.Context(), `
		SELECT 'table ' || relname || ' ' || coalesce(reloptions::text, '') || string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull, ', ' ORDER BY attnum)
			FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' GROUP BY c.oid, relname, reloptions
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
		UNION ALL SELECT conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'p' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAUsersDatabaseHasEveryTableAndIndexOfTheMigrations(t *testing.T) {
	t.Parallel()
	c, u := alice(t)
	src, err := migrations.FS.ReadFile("user/0001_initial.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn := session(t, databaseOf(t, c, u))
	for _, m := range regexp.MustCompile(`CREATE (TABLE|INDEX) (\w+)(?: ON \w+ USING (\w+))?`).FindAllStringSubmatch(string(src), -1) {
		kind, name, method := m[1], m[2], m[3]
		if kind == "TABLE" {
			method = "heap"
		} else if method == "" {
			method = "btree"
		}
		var got string
		err := conn.QueryRow(t.Context(), `SELECT amname FROM pg_class JOIN pg_am a ON a.oid = relam WHERE relname = $1`, name).Scan(&got)
		if err != nil || got != method {
			t.Errorf("%s %s is %q, %v; want %q", kind, name, got, err, method)
		}
	}
	// Each table must have the indexes that the product document names.
	for table, indexes := range map[string][]string{
		"objects": {"gin (((raw -> 'type'::text)))", "gin (((raw -> 'attributedTo'::text)))", "gin (((raw -> 'inReplyTo'::text)))",
			"gin ((((raw -> 'lwMetadata'::text) -> 'tags'::text)))", "btree (published DESC)"},
		"activities": {"gin (((raw -> 'actor'::text)))", "gin (((raw -> 'object'::text)) jsonb_path_ops)", "gin (((raw -> 'to'::text)))", "gin (((raw -> 'cc'::text)))"},
		"feed":       {"btree (published DESC, id DESC)"},
	} {
		rows, err := conn.Query(t.Context(), `SELECT indexdef FROM pg_indexes WHERE tablename = $1`, table)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range indexes {
			if !strings.Contains(strings.Join(all, "\n")+"\n", "USING "+want+"\n") {
				t.Errorf("%s has no index %s, only\n%s", table, want, strings.Join(all, "\n"))
			}
		}
	}
}
