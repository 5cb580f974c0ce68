package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show a user",
		Long: "show tells what a user has: actor, database and keys. config_error says why the engine cannot\n" +
			"use the user's config.json: it keeps the last good one, and after a restart it closes the user\n" +
			"to others.",
		Example: "  lightweb user show alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			name, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				u, err := t.Users.Find(ctx, name)
				if err != nil {
					return err
				}
				facts := append(userFacts(u),
					fact{key: "keys_dir", value: u.KeysDir}, fact{key: "state", value: u.State}, fact{key: "created_at", value: stamp(u.CreatedAt)},
					fact{key: "has_password", value: strconv.FormatBool(*u.HasPassword)})
				if u.Refused != "" {
					facts = append(facts, fact{key: "config_error", value: u.Refused})
				}
				return a.out.writeFacts(a.out.style().Bold(true).Render(u.Name.String()), facts, u)
			})
		}),
	}
}
