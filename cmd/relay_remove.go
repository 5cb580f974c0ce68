package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newRelayRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove URL|ACTOR [flags]",
		Short: "Unsubscribe from a relay",
		Long: "remove sends the relay the Undo of the Follow, and removes it from the list. The engine sends no\n" +
			"new post to the relay and accepts nothing that it forwards. A relay that is blocked or does not\n" +
			"answer is removed too, with a warning. Name the relay by its actor or its inbox. Exit code 66:\n" +
			"there is no such relay.",
		Example: "  lightweb relay remove https://relay.example/inbox",
		Args:    takesArgs("URL|ACTOR"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Relays.Remove(ctx, args[0])
				if err != nil {
					return err
				}
				if err := a.out.writeDone("removed "+string(r.Actor), r); err != nil {
					return err
				}
				if !r.Undone {
					a.notices.warn("the relay was not told: %s", r.Problem)
				}
				return nil
			})
		}),
	}
}
