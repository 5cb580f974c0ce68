package cmd

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDomainExport(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Write the blocked domains as a list",
		Long: "export writes the blocked domains with their comments to standard output, in Mastodon's format.\n" +
			"import reads it, here and on other servers. Read the comments before you give the list to\n" +
			"others.",
		Example: "  lightweb domain export > blocklist.csv",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				if !a.json && !a.quiet {
					return t.Domains.Export(a.out.w)
				}
				domains, err := t.Domains.List()
				if err != nil {
					return err
				}
				blocked := slices.DeleteFunc(domains, func(d admin.Domain) bool { return d.State != admin.DomainBlocked })
				return a.out.writeDocument(domainList{blocked})
			})
		}),
	}
}
