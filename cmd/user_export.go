package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserExport(a *app) *cobra.Command {
	var b admin.BackupOptions
	c := &cobra.Command{
		Use:   "export NAME FILE [flags]",
		Short: "Write everything of a user to a file",
		Long: "export writes everything of a user to FILE, or to standard output if FILE is -, as 'backup\n" +
			"--user NAME' does. 'user import' reads it, here or on another server. For other programs FILE\n" +
			"has actor.json, outbox.json, followers.json, following.json, likes.json, blocks.json and\n" +
			"featured.json in ActivityPub's format, and the pictures of the profile. An engine may serve\n" +
			"meanwhile.\n\n" +
			"Only the owner of FILE can read it. Keep it so: it has private keys and every message. --no-keys\n" +
			"leaves the keys out; a user who moves to another server does not need them. FILE appears when it\n" +
			"is complete, and never replaces another file.",
		Example: "  lightweb user export alice alice.tar.gz --no-keys\n  lightweb user export alice alice.tar.gz && tar xzf alice.tar.gz outbox.json",
		Args:    takesArgs("NAME", "FILE"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if b.User, err = vocab.ParseUsername(args[0]); err != nil {
				return err
			}
			return a.runBackup(ctx, args[1], b)
		}),
	}
	c.Flags().BoolVar(&b.NoKeys, "no-keys", false, "leave the private keys out")
	return c
}
