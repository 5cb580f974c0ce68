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
		Short: "Delete a user and all it has, everywhere",
		Long: "delete closes the user NAME to everybody at once and for good: its tokens are refused and its posts are gone (410).\n" +
			"The engine that serves, now or when it starts, tells every server that knows the user. When all have heard of it, or\n" +
			"after 30 days, it removes database, keys, configuration and pictures. The name is never used again. Given again,\n" +
			"delete says how many deliveries are still owed. Exit code 66 says that the user was deleted before.",
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
