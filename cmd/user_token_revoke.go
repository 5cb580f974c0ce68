package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserTokenRevoke(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "revoke NAME ID [flags]",
		Short:   "Revoke a token",
		Long:    "revoke ends the token ID of the user NAME for good: programs that use it are refused at once.",
		Example: "  lightweb user token revoke alice 0198c0de-7a51-7000-8000-000000000001 --yes",
		Args:    takesArgs("NAME", "ID"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if err := a.prompt.confirm(ctx, fmt.Sprintf("revoke the token %s of %s", args[1], user), yes); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				if err := t.Tokens.Revoke(ctx, user, args[1]); err != nil {
					return err
				}
				return a.out.writeDone("revoked "+args[1], map[string]any{"user": user, "id": args[1], "revoked": true})
			})
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}
