package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newHostShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show HOST [flags]",
		Short:   "Show a host",
		Long:    "show tells the state of deliveries to a host, the name of its software, and the signatures that it\naccepts. 'lightweb deliver list --all --host HOST' lists the deliveries that wait.",
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
