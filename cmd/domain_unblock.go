package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDomainUnblock(a *app) *cobra.Command {
	change := admin.DomainChange{List: admin.DomainBlocked, Remove: true}
	c := &cobra.Command{
		Use:   "unblock DOMAIN [DOMAIN…] [flags]",
		Short: "Unblock domains",
		Long: "unblock removes domains and their comments from the list of blocked domains. Activities that\n" +
			"they sent meanwhile were refused, and deliveries to them were skipped; neither is repeated. Exit\n" +
			"code 66: none was blocked. Exit code 3: some were not.",
		Example: "  lightweb domain unblock evil.example",
		Args:    takesArgs("DOMAIN", "[DOMAIN…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			change.Domains = args
			return a.changeDomains(ctx, change, "unblocked")
		}),
	}
	addDomainFlags(c, &change)
	return c
}
