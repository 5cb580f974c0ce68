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
		Long: "unsuspend removes actors and their comments from the list of suspended actors. Activities that\n" +
			"they sent meanwhile were refused, and deliveries to them were skipped; neither is repeated. Exit\n" +
			"code 66: none was suspended. Exit code 3: some were not.",
		Example: "  lightweb actor unsuspend @troll@good.example",
		Args:    takesArgs("URI|HANDLE", "[URI|HANDLE…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.changeSuspended(ctx, admin.Suspension{Actors: args, Remove: true}, "unsuspended")
		}),
	}
}
