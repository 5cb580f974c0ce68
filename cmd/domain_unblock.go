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
		Long: "unblock takes domains off the list of blocked ones, with their comments. Activities they sent meanwhile were refused, and\n" +
			"what they were owed was skipped: neither is made up for. Exit code 66 says that none was blocked, 3 that some were not.",
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
