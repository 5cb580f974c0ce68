package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

// partly returns the report of a migration in which one database failed.
func partly(t *testing.T) admin.MigrationReport {
	t.Helper()
	carol, err := vocab.ParseUsername("carol")
	if err != nil {
		t.Fatal(err)
	}
	return admin.MigrationReport{Target: 12, Databases: 214, Migrated: 211, Unchanged: 2, Failed: 1, Millis: 14210, Failures: []admin.MigrationFailure{{
		User: carol, Version: 12, Dirty: true, SQLState: "42P07", Error: `relation "x" already exists (SQLSTATE 42P07)`, Hint: "lightweb db migrate carol --repair"}}}
}

func TestAMigrationIsReported(t *testing.T) {
	whole := admin.MigrationReport{Target: 12, Databases: 2, Migrated: 2, Millis: 90, Failures: []admin.MigrationFailure{}}
	would := whole
	would.DryRun = true
	for _, tt := range []struct {
		name           string
		report         admin.MigrationReport
		terminal, json bool
		want           string
	}{
		{"to people", whole, true, false, "✓ 2 migrated to schema 12, 0 already there, 0 failed in 90ms\n"},
		{"what would be done, to people", would, true, false, "2 to migrate to schema 12, 0 already there, 0 cannot be\n"},
		{"a failure, to people", partly(t), true, false, `211 migrated to schema 12, 2 already there, 1 failed in 14.21s
  failure  carol, schema 12: relation "x" already exists (SQLSTATE 42P07)
           hint: lightweb db migrate carol --repair
`},
		{"a failure, to a pipe", partly(t), false, false, `target: 12
databases: 214
migrated: 211
unchanged: 2
failed: 1
elapsed_ms: 14210
dry_run: false
failure: carol, schema 12: relation "x" already exists (SQLSTATE 42P07)
`},
		{"a failure, to programs", partly(t), false, true, `{"target":12,"databases":214,"migrated":211,"unchanged":2,"failed":1,"elapsed_ms":14210,"failures":[{"user":"carol","version":12,"dirty":true,"sqlstate":"42P07","error":"relation \"x\" already exists (SQLSTATE 42P07)"}],"dry_run":false}` + "\n"},
		{"no failure is an empty list", would, false, true, `{"target":12,"databases":2,"migrated":2,"unchanged":0,"failed":0,"elapsed_ms":90,"failures":[],"dry_run":true}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			a.out.json = tt.json
			if err := a.out.showMigration(tt.report); err != nil || out.String() != tt.want {
				t.Errorf("wrote %s, %v, want %s", out, err, tt.want)
			}
		})
	}
}

func TestAMigrationsReportDecidesTheExitCode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		report admin.MigrationReport
		check  bool
		want   string // the failure as JSON; empty if the migration succeeds
	}{
		{"nothing to do", admin.MigrationReport{Databases: 2, Unchanged: 2}, true, ""},
		{"all migrated", admin.MigrationReport{Databases: 2, Migrated: 2}, false, ""},
		{"something to do", admin.MigrationReport{Target: 12, Databases: 3, Migrated: 2, Unchanged: 1}, true,
			`{"code":"pending","message":"2 of 3 databases are not at schema 12","hint":"lightweb db migrate","exit":4}`},
		{"some failed", partly(t), false,
			`{"code":"partial","message":"1 of 214 databases could not be migrated","hint":"lightweb db migrate carol --repair","exit":3}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := migrationFault(tt.report, tt.check)
			if (err == nil) != (tt.want == "") {
				t.Fatalf("migrated = %v, want %q", err, tt.want)
			}
			if err == nil {
				return
			}
			got, err := json.Marshal(failureOf(errors.Join(err)))
			if err != nil || string(got) != tt.want {
				t.Errorf("failure %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestProgressIsNotWrittenWhereNobodyWatches(t *testing.T) {
	var out bytes.Buffer
	step, end := (&notices{w: &out}).progress("migrating")
	for n := range 100 {
		step(n+1, 100)
	}
	end()
	if strings.TrimSpace(out.String()) != "" {
		t.Errorf("wrote %q into a pipe within moments", out.String())
	}
}

func TestProgressIsForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		step, end := (&notices{w: &out, json: true}).progress("migrating")
		time.Sleep(progressEvery)
		step(3, 10)
		end()
		if out.Len() > 0 {
			t.Errorf("with --json progress writes %q into a pipe, want nothing", &out)
		}
	})
}
