package cmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newBackup(a *app) *cobra.Command {
	var user string
	var b admin.BackupOptions
	c := &cobra.Command{
		Use:   "backup FILE [flags]",
		Short: "Write a backup of the instance, or of one user",
		Long: "backup writes the whole instance to FILE, or to standard output if FILE is -: users, their\n" +
			"databases, configuration, tokens as digests, and private keys. It may run beside a serving\n" +
			"engine, and delays nobody. The backup has everything that the engine accepted before the backup\n" +
			"began. A backup of one user lacks the activities that waited to be applied then.\n\n" +
			"Only the owner of FILE can read it. Keep it so: it has private keys and every message. --no-keys\n" +
			"leaves the keys out; then keep them elsewhere. FILE appears when it is complete, and never\n" +
			"replaces another file. Exit code 3: the database of some user could not be opened, and the\n" +
			"backup lacks it.\n\n" +
			"FILE is a tar archive packed with gzip. Every version of PostgreSQL can restore it, with this\n" +
			"lightweb or a newer one.",
		Example: "  lightweb backup /var/backups/lightweb-$(date +%F).tar.gz\n  lightweb backup alice.tar.gz --user alice\n" +
			"  lightweb backup - | age -r age1… > lightweb.tar.gz.age",
		Args: takesArgs("FILE"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			if user != "" {
				var err error
				if b.User, err = vocab.ParseUsername(user); err != nil {
					return err
				}
			}
			return a.runBackup(ctx, args[0], b)
		}),
	}
	c.Flags().StringVar(&user, "user", "", "back up the user `NAME` alone")
	c.Flags().BoolVar(&b.NoKeys, "no-keys", false, "leave the private keys out")
	return c
}

// runBackup writes a backup and shows what is in it.
func (a *app) runBackup(ctx context.Context, path string, b admin.BackupOptions) error {
	streamed := path == "-"
	switch {
	case streamed && a.json:
		return fault.New(fault.Usage, "standard output takes the archive or --json, not both")
	case streamed && isTerminal(a.stdout):
		return fault.New(fault.Usage, "the archive is not written to a terminal").WithHint("lightweb backup - > FILE")
	}
	return a.admin(ctx, func(t *admin.Tasks) error {
		var end func()
		b.Progress, end = a.notices.progress("backing up users")
		r, err := a.takeBackup(ctx, t, path, b)
		end()
		if err != nil {
			return err
		}
		if !streamed {
			if err := a.out.showBackup(r); err != nil {
				return err
			}
		}
		if n := len(r.Failures); n > 0 {
			return fault.New(fault.Partial, fmt.Sprintf("the backup lacks the database of %d of %d users: %s: %s", n, r.Users, r.Failures[0].User, r.Failures[0].Error)).
				WithHint(r.Failures[0].Hint)
		}
		return nil
	})
}

func (a *app) takeBackup(ctx context.Context, t *admin.Tasks, path string, b admin.BackupOptions) (admin.BackupReport, error) {
	if path != "-" {
		return t.Backups.WriteFile(ctx, path, b)
	}
	return t.Backups.Write(ctx, wholly{a.stdout}, b)
}

// wholly makes every error of standard output a failure, even that of a closed pipe, because an
// incomplete backup is useless.
type wholly struct{ io.Writer }

func (w wholly) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		err = &exitError{exitFailed, fmt.Errorf("write the backup: %w", err)}
	}
	return n, err
}

func (p *printer) showBackup(r admin.BackupReport) error {
	keys := "in it: keep the file secret"
	if !r.Keys {
		keys = "not in it"
	}
	facts := []fact{
		{key: "file", value: r.File, titled: true},
		{key: "bytes", value: strconv.FormatInt(r.Bytes, 10)},
		{key: "created_at", value: stamp(r.CreatedAt)},
		{key: "whole", value: strconv.FormatBool(r.Whole), titled: true},
		{key: "users", value: strconv.Itoa(r.Users)},
		{key: "rows", value: strconv.FormatInt(r.Rows, 10)},
		{key: "keys", value: keys},
		{key: "sha256", value: r.SHA256},
		{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		facts = append(facts, fact{key: name, value: strconv.Itoa(r.Counts[name])})
	}
	for _, f := range r.Failures {
		facts = append(facts, fact{key: "failure", value: f.User.String() + ": " + f.Error})
	}
	title := fmt.Sprintf("%s wrote %s in %s", p.tick(), cleanLine(r.File), time.Duration(r.Millis)*time.Millisecond)
	return p.writeFacts(title, facts, r)
}
