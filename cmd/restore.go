package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newRestore(a *app) *cobra.Command {
	var user string
	var r admin.RestoreOptions
	var yes bool
	c := &cobra.Command{
		Use:   "restore FILE [flags]",
		Short: "Restore the instance, or one user, from a backup",
		Long: "restore reads the backup FILE, checks that it is complete, builds the databases beside those in\n" +
			"use, and exchanges them at once. If restore is killed, the instance has its old state or the\n" +
			"restored one: run restore again. If an engine is serving, restore ends with exit code 75.\n\n" +
			"A whole backup needs an instance without users and with the same public_url. --user restores one\n" +
			"user, from a backup of that user or of the instance, into an instance that lacks the user or its\n" +
			"database. --replace renames the database that is there. If the instance knows the user, the user\n" +
			"keeps its state and tokens.\n\n" +
			"restore does not send the deliveries that the backup owed to other servers, because most of them\n" +
			"were sent after the backup was taken. It skips and counts them. It never replaces a file: if a\n" +
			"key differs from the backup's, it restores nothing, unless --keep-keys says to use the key that\n" +
			"is here. After a restore of the instance, or of a user that the instance does not know, tokens\n" +
			"that were revoked since the backup work again.\n\n" +
			"--dry-run builds the databases and removes them again, also beside a serving engine. Test a\n" +
			"backup with it.",
		Example: "  lightweb restore lightweb-2026-03-01.tar.gz --dry-run\n  lightweb restore lightweb-2026-03-01.tar.gz\n" +
			"  lightweb restore lightweb-2026-03-01.tar.gz --user alice --replace --yes",
		Args: takesArgs("FILE"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			if user != "" {
				var err error
				if r.User, err = vocab.ParseUsername(user); err != nil {
					return err
				}
			}
			if r.Replace {
				if user == "" {
					return fault.New(fault.Usage, "--replace needs --user").WithHint("a whole backup is restored into an instance without users")
				}
				if !r.DryRun {
					if err := a.prompt.confirm(ctx, "replace the database of "+user, yes); err != nil {
						return err
					}
				}
			}
			return a.runRestore(ctx, args[0], r)
		}),
	}
	c.Flags().StringVar(&user, "user", "", "restore the user `NAME` alone")
	c.Flags().BoolVar(&r.Replace, "replace", false, "rename the user's present database, and use the backup's")
	c.Flags().BoolVar(&r.KeepKeys, "keep-keys", false, "use the keys that are here, not those of the backup")
	c.Flags().BoolVarP(&r.DryRun, "dry-run", "n", false, "build everything, put nothing in place, and report what would be done")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// runRestore restores the backup at path and shows the report.
func (a *app) runRestore(ctx context.Context, path string, r admin.RestoreOptions) error {
	moves := r.User.IsZero() && !r.DryRun
	open := func(ctx context.Context, c instance.Config, log *slog.Logger) (*instance.Instance, error) {
		return instance.OpenToRestore(ctx, c, moves, log)
	}
	return a.instance(ctx, open, func(in *instance.Instance) error {
		var end func()
		r.Progress, end = a.notices.progress("restoring users")
		report, err := admin.New(in).Backups.Restore(ctx, path, r)
		end()
		if err != nil && fault.KindOf(err) != fault.Partial {
			return err
		}
		if shown := a.out.showRestore(report); shown != nil {
			return shown
		}
		return err
	})
}

func (p *printer) showRestore(r admin.RestoreReport) error {
	took := time.Duration(r.Millis) * time.Millisecond
	title := fmt.Sprintf("%s restored the backup of %s in %s", p.tick(), stamp(r.CreatedAt), took)
	if r.DryRun {
		title = fmt.Sprintf("%s the backup of %s can be restored", p.tick(), stamp(r.CreatedAt))
	}
	facts := []fact{
		{key: "file", value: r.File},
		{key: "created_at", value: stamp(r.CreatedAt), titled: true},
		{key: "lightweb", value: r.Version},
		{key: "public_url", value: r.PublicURL},
		{key: "whole", value: strconv.FormatBool(r.Whole), titled: true},
		{key: "keys", value: strconv.FormatBool(r.Keys)},
		{key: "users", value: strconv.Itoa(r.Users)},
		{key: "rows", value: strconv.FormatInt(r.Rows, 10)},
		{key: "fenced", value: strconv.FormatInt(r.Fenced, 10), note: " deliveries to other servers that are not sent by themselves"},
	}
	blocks := ""
	if r.Blocks > 0 {
		blocks = strconv.Itoa(r.Blocks)
	}
	for _, f := range []fact{
		{key: "kept", value: strings.Join(r.Kept, ", "), note: " — as it was, not as in the backup"},
		{key: "without_database", value: strings.Join(r.Without, ", ")},
		{key: "blocks", value: blocks, note: " newer than the backup, taken over from the database that was put aside"},
		{key: "put_aside", value: r.PutAside, note: " — drop it when you are sure"},
		{key: "refusal", value: r.Refusal, note: " — so nothing could be put in place now"},
	} {
		if f.value != "" {
			facts = append(facts, f)
		}
	}
	facts = append(facts, fact{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
		fact{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true})
	return p.writeFacts(title, facts, r)
}
