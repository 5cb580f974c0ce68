package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newHostList(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list [--all] [flags]",
		Short: "List hosts with failing or waiting deliveries",
		Long: "list shows the hosts to which deliveries fail or wait. Their state is failing, open (no\n" +
			"deliveries for a while), half_open (one delivery at a time tests the host), inactive or paused.\n" +
			"In a pipe it writes a line per host with name, state, failures, the time of the next attempt,\n" +
			"software and the last error, separated by tabs.",
		Example: "  lightweb host list\n  lightweb host list --all --json | jq -r '.hosts[] | select(.state == \"inactive\").host'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				hosts, err := t.Hosts.List(ctx, all)
				if err != nil {
					return err
				}
				rows := make([][]string, len(hosts))
				for i, h := range hosts {
					rows[i] = []string{h.Host, h.State, strconv.Itoa(h.Failures), stampOrNothing(h.NextAttempt), h.Software, h.LastError}
				}
				return a.out.writeTable([]string{"HOST", "STATE", "FAILURES", "NEXT ATTEMPT", "SOFTWARE", "LAST ERROR"}, rows, struct {
					Hosts []admin.Host `json:"hosts"`
				}{hosts})
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "list all known hosts")
	return c
}
