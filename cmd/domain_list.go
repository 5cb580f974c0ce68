package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

// domainList is the result of domain list, and of domain export --json.
type domainList struct {
	Domains []admin.Domain `json:"domains"`
}

func newDomainList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list [flags]",
		Short: "List blocked and allowed domains",
		Long: "list shows the domains that the policy names, the blocked ones first. In a pipe: a line per domain with name, blocked or\n" +
			"allowed, and comment, separated by tabs.",
		Example: "  lightweb domain list\n  lightweb domain list --json | jq -r '.domains[] | select(.state == \"blocked\").domain'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				domains, err := t.Domains.List()
				if err != nil {
					return err
				}
				rows := make([][]string, len(domains))
				for i, d := range domains {
					rows[i] = []string{d.Domain, d.State, d.Comment}
				}
				return a.out.writeTable([]string{"DOMAIN", "STATE", "COMMENT"}, rows, domainList{domains})
			})
		}),
	}
}
