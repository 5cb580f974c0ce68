package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDomainBlock(a *app) *cobra.Command {
	change := admin.DomainChange{List: admin.DomainBlocked}
	c := &cobra.Command{
		Use:   "block DOMAIN [DOMAIN…] [flags]",
		Short: "Block domains",
		Long: "block refuses everything that comes from a domain or its subdomains, fetches nothing from there\n" +
			"and delivers nothing there. Earlier activities are hidden, not deleted: unblock shows them\n" +
			"again. A warning says how many users know an actor there.\n\n" +
			"You can block an IP address, but no network. block refuses the domain of this server and a\n" +
			"public suffix such as co.uk: it changes nothing and ends with exit code 65. Exit code 73: all\n" +
			"were blocked before. Exit code 3: some were.",
		Example: "  lightweb domain block evil.example --comment \"spam, see report 12\"\n  lightweb domain block evil.example wicked.example --dry-run",
		Args:    takesArgs("DOMAIN", "[DOMAIN…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			change.Domains = args
			return a.changeDomains(ctx, change, "blocked")
		}),
	}
	addDomainFlags(c, &change)
	return c
}
