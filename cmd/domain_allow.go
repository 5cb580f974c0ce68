package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDomainAllow(a *app) *cobra.Command {
	change := admin.DomainChange{List: admin.DomainAllowed}
	c := &cobra.Command{
		Use:   "allow DOMAIN [DOMAIN…] [flags]",
		Short: "Allow domains, where only allowed ones may talk to this server",
		Long: "allow puts domains on the list of those that may talk to this server if federation.mode is\n" +
			"allowlist. In other modes the list has no effect. A blocked domain stays blocked, also if it is\n" +
			"allowed.",
		Example: "  lightweb domain allow friends.example",
		Args:    takesArgs("DOMAIN", "[DOMAIN…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			change.Domains = args
			c, err := a.config()
			if err != nil {
				return err
			}
			if mode := c.Engine.Federation.Mode; mode != "allowlist" {
				a.notices.warn("federation.mode is %s: allowed domains count when it is allowlist", mode)
			}
			return a.changeDomains(ctx, change, "allowed")
		}),
	}
	addDomainFlags(c, &change)
	return c
}
