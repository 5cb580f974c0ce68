package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserRotateKeys(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "rotate-keys NAME [flags]",
		Short: "Replace the keys of a user",
		Long: "rotate-keys makes new keys for the user NAME and removes the old ones. Run it if somebody else\n" +
			"may have seen the old keys. A running engine signs with the new keys within seconds, and tells\n" +
			"other servers by an Update of the actor. The public half of the old Ed25519 key stays in the\n" +
			"actor's document for at least 30 days, and as long as deliveries with its proof are owed. To\n" +
			"finish a rotation that was killed, run it again.",
		Example: "  lightweb user rotate-keys alice --yes",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if err := a.prompt.confirm(ctx, "replace the keys of "+user.String(), yes); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Users.RotateKeys(ctx, user)
				if err != nil {
					return err
				}
				return a.out.writeDone(fmt.Sprintf("replaced the keys of %s; other servers are told within seconds while an engine serves", r.User), r)
			})
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}
