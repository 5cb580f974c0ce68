package cmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserDelete(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME [flags]",
		Short: "Delete a user for good",
		Long: "delete closes the user NAME to everybody at once and for good. The tokens of the user are\n" +
			"refused, and its posts are gone (410). A running engine, or the next one, tells every server\n" +
			"that knows the user. When all have been told, or after 30 days, the engine removes database,\n" +
			"keys, configuration and pictures. The name cannot be used again. Run delete again to see how\n" +
			"many deliveries are still owed. Exit code 66: the user was deleted before.",
		Example: "  lightweb user delete alice --yes",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if err := a.prompt.confirm(ctx, "delete "+user.String()+" with everything that it has", yes); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				d, err := t.Users.Delete(ctx, user)
				if err != nil {
					return err
				}
				return a.out.writeDone(describeDeletion(d), d)
			})
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func describeDeletion(d admin.DeletedUser) string {
	until := d.Until.Format(time.DateOnly)
	if d.Owed == nil {
		return fmt.Sprintf("closed %s; it is deleted when other servers have heard of it, on %s at the latest", d.User, until)
	}
	return fmt.Sprintf("%s is being deleted: %d deliveries are still owed; it ends on %s at the latest", d.User, *d.Owed, until)
}
