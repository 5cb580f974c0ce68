package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDomainDisallow(a *app) *cobra.Command {
	change := admin.DomainChange{List: admin.DomainAllowed, Remove: true}
	c := &cobra.Command{
		Use:   "disallow DOMAIN [DOMAIN…] [flags]",
		Short: "Take domains off the list of allowed ones",
		Long: "disallow removes domains from the list that allow writes. Exit code 66: none was on the list.\n" +
			"Exit code 3: some were not.",
		Example: "  lightweb domain disallow friends.example",
		Args:    takesArgs("DOMAIN", "[DOMAIN…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			change.Domains = args
			return a.changeDomains(ctx, change, "disallowed")
		}),
	}
	addDomainFlags(c, &change)
	return c
}
