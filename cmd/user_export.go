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
		Short: "Write everything a user has to a file",
		Long: "export writes everything of a user to FILE, or to standard output when FILE is -: what 'backup --user NAME' writes.\n" +
			"'user import' reads it, here or on another server. For other programs it has actor.json, outbox.json, followers.json,\n" +
			"following.json, likes.json, blocks.json and featured.json as ActivityPub has them, and the pictures of the profile.\n" +
			"A serving engine goes on meanwhile.\n\n" +
			"FILE can be read by its owner alone: keep it so, for it holds private keys and every message. --no-keys leaves the\n" +
			"keys out; nobody needs them who takes the user to another server. FILE appears when it is whole, and never replaces\n" +
			"another.",
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
