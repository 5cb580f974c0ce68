package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newActorUnsuspend(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "unsuspend URI|HANDLE [URI|HANDLE…]",
		Short: "End the suspension of actors",
		Long: "unsuspend takes actors off the list of suspended ones, with their comments. Activities they sent meanwhile were refused, and\n" +
			"what they were owed was skipped: neither is made up for. Exit code 66 says that none was suspended, 3 that some were\n" +
			"not.",
		Example: "  lightweb actor unsuspend @troll@good.example",
		Args:    takesArgs("URI|HANDLE", "[URI|HANDLE…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.changeSuspended(ctx, admin.Suspension{Actors: args, Remove: true}, "unsuspended")
		}),
	}
}
