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
		Long: "unsuspend makes the suspended user NAME active again, with the same tokens. A running engine\n" +
			"applies the waiting activities within a minute. Activities that other servers sent meanwhile\n" +
			"were refused. Exit code 66: the user was not suspended.",
		Example: "  lightweb user unsuspend alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.changeState(ctx, args[0], "unsuspended", admin.Users.Unsuspend)
		}),
	}
}
