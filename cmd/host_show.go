package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newHostShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show HOST [flags]",
		Short:   "Show what is known of a host",
		Long:    "show tells how deliveries to a host go, what its software calls itself, and which signatures it takes. Its\ndeliveries that wait are in 'lightweb deliver list --all --host HOST'.",
		Example: "  lightweb host show social.example",
		Args:    takesArgs("HOST"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				h, err := t.Hosts.Find(ctx, args[0])
				if err != nil {
					return err
				}
				return a.out.writeFacts(h.Host, hostFacts(h), h)
			})
		}),
	}
}
