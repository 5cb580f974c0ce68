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
		Long: "block lets nothing in that comes from a domain or anything below it, fetches nothing from there and delivers nothing\n" +
			"there. Earlier activities are hidden, and nothing is deleted: unblock brings it back. A warning says how many users know\n" +
			"somebody there.\n\n" +
			"An IP address may be blocked, a network not. The domain of this server is refused, and so is a public suffix such as\n" +
			"co.uk: exit code 65, and nothing is changed. Exit code 73 says that all were blocked before, 3 that some were.",
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
