package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

// maxListed is the largest value of the flag --limit of the commands that list.
const maxListed = 100_000

func newInboxList(a *app) *cobra.Command {
	var f inboxFlags
	c := &cobra.Command{
		Use:   "list [USER…|--all] [flags]",
		Short: "List activities that users did not get",
		Long: "list shows the activities that were set aside for every USER, and those that wait, each the\n" +
			"oldest first.\n\n" +
			"In a pipe it writes a line per activity with user, state, activity, type, actor, time of arrival\n" +
			"and reason, separated by tabs. The JSON document also has the totals.",
		Example: "  lightweb inbox list --all\n  lightweb inbox list alice --json | jq .waiting",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			choice, err := f.choose(a, args)
			if err != nil {
				return err
			}
			if choice.Limit < 1 || choice.Limit > maxListed {
				return fault.New(fault.Usage, fmt.Sprintf("--limit %d is not from 1 to %d", choice.Limit, maxListed))
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				l, err := t.Inboxes.List(ctx, choice)
				if err != nil {
					return err
				}
				rows := make([][]string, len(l.Items))
				for n, i := range l.Items {
					rows[n] = []string{i.User.String(), i.State, string(i.Activity), i.Type, string(i.Actor), stamp(i.Since), i.Reason}
				}
				if err := a.out.writeTable([]string{"USER", "STATE", "ACTIVITY", "TYPE", "ACTOR", "SINCE", "REASON"}, rows, l); err != nil {
					return err
				}
				return inboxFailed("looked at", l.Failures)
			})
		}),
	}
	f.add(c)
	c.Flags().IntVar(&f.choice.Limit, "limit", 100, "list at most `N` activities: 100 unless given")
	return c
}
