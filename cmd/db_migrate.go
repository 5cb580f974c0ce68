package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxMigrating is the largest value of --concurrency. It is low because each database that is
// migrated needs four connections.
const maxMigrating = 64

func newDBMigrate(a *app) *cobra.Command {
	var m admin.Migration
	var check bool
	c := &cobra.Command{
		Use:   "migrate [USER…] [flags]",
		Short: "Bring databases to the schema of this lightweb",
		Long: "migrate brings the instance database, the template of users' databases and the database of every\n" +
			"USER to the schema of this lightweb; without USER, the databases of all users. If one database\n" +
			"fails, migrate continues with the others and ends with exit code 3. Only one migrate runs at a\n" +
			"time: a second one ends with exit code 75.\n\n" +
			"A migration that failed or was killed changes nothing but a mark. The engine cannot serve that\n" +
			"user until migrate --repair has repeated the migration. --check changes nothing, and exit code 4\n" +
			"says that some database needs a migration.",
		Example: "  lightweb db migrate --check\n  lightweb db migrate\n  lightweb db migrate carol --repair",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			if m.Concurrency < 1 || m.Concurrency > maxMigrating {
				return fault.New(fault.Usage, fmt.Sprintf("--concurrency %d is not from 1 to %d", m.Concurrency, maxMigrating))
			}
			for _, arg := range args {
				u, err := vocab.ParseUsername(arg)
				if err != nil {
					return err
				}
				m.Users = append(m.Users, u)
			}
			m.DryRun = m.DryRun || check
			return a.runMigration(ctx, m, check)
		}),
	}
	c.Flags().BoolVar(&check, "check", false, "change nothing, and end with 4 if a database needs a migration")
	c.Flags().BoolVarP(&m.DryRun, "dry-run", "n", false, "change nothing, and report what would be done")
	c.Flags().IntVar(&m.Concurrency, "concurrency", 4, "migrate `N` databases at once: 4 unless given")
	c.Flags().BoolVar(&m.Repair, "repair", false, "repeat a migration that failed or was killed")
	c.Flags().BoolVar(&m.FailFast, "fail-fast", false, "stop at the first database that fails")
	return c
}

// runMigration runs m and shows its report.
func (a *app) runMigration(ctx context.Context, m admin.Migration, check bool) error {
	open := func(ctx context.Context, c instance.Config, log *slog.Logger) (*instance.Instance, error) {
		return instance.OpenToMigrate(ctx, c, m.DryRun, m.Repair, log)
	}
	err := a.instance(ctx, open, func(in *instance.Instance) error {
		var end func()
		m.Progress, end = a.notices.progress("migrating databases")
		r, err := admin.New(in).Databases.Migrate(ctx, m)
		end()
		if err != nil {
			return err
		}
		if err := a.out.showMigration(r); err != nil {
			return err
		}
		return migrationFault(r, check)
	})
	if check && instance.IsBehind(err) {
		return &exitError{exitPending, err}
	}
	return err
}

// migrationFault returns the error with which the command ends because of the report, or nil. If
// check is true, it returns an error if any database is not at the target schema. Otherwise it
// returns an error if any database failed.
func migrationFault(r admin.MigrationReport, check bool) error {
	todo := r.Migrated + r.Failed
	switch {
	case check && todo > 0:
		return &exitError{exitPending, fault.New(fault.Partial, fmt.Sprintf("%d of %d databases are not at schema %d", todo, r.Databases, r.Target)).
			WithCode("pending").WithHint("lightweb db migrate")}
	case r.Failed > 0:
		words := "could not be migrated"
		if r.DryRun {
			words = "cannot be migrated"
		}
		return fault.New(fault.Partial, fmt.Sprintf("%d of %d databases %s", r.Failed, r.Databases, words)).WithHint(r.Failures[0].Hint)
	}
	return nil
}

func (p *printer) showMigration(r admin.MigrationReport) error {
	took := time.Duration(r.Millis) * time.Millisecond
	title := fmt.Sprintf("%d migrated to schema %d, %d already there, %d failed in %s", r.Migrated, r.Target, r.Unchanged, r.Failed, took)
	switch {
	case r.DryRun:
		title = fmt.Sprintf("%d to migrate to schema %d, %d already there, %d cannot be", r.Migrated, r.Target, r.Unchanged, r.Failed)
	case r.Failed == 0:
		title = p.tick() + " " + title
	}
	facts := []fact{
		{key: "target", value: strconv.Itoa(r.Target), titled: true},
		{key: "databases", value: strconv.Itoa(r.Databases), titled: true},
		{key: "migrated", value: strconv.Itoa(r.Migrated), titled: true},
		{key: "unchanged", value: strconv.Itoa(r.Unchanged), titled: true},
		{key: "failed", value: strconv.Itoa(r.Failed), titled: true},
		{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true},
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}
	for _, f := range r.Failures {
		line := fact{key: "failure", value: fmt.Sprintf("%s, schema %d: %s", f.User, f.Version, f.Error)}
		if f.Hint != "" {
			line.note = "\n           hint: " + f.Hint
		}
		facts = append(facts, line)
	}
	return p.writeFacts(title, facts, r)
}
