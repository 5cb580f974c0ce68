package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newUserUnsuspend(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "unsuspend NAME",
		Short: "End the suspension of a user",
		Long: "unsuspend makes the suspended user NAME active again, with the tokens it had. A running engine applies what waited for\n" +
			"it within a minute; what other servers sent meanwhile was refused. Exit code 66 says that the user was not suspended.",
		Example: "  lightweb user unsuspend alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.changeState(ctx, args[0], "unsuspended", admin.Users.Unsuspend)
		}),
	}
}
