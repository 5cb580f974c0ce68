package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newInboxDrop(a *app) *cobra.Command {
	var f inboxFlags
	var yes bool
	c := &cobra.Command{
		Use:   "drop [USER…|--all] [flags]",
		Short: "Drop activities that users did not get",
		Long: "drop deletes for good the activities that were set aside for every USER, and those that wait.\n" +
			"The engine does not accept an activity again that was set aside and dropped. It does accept one\n" +
			"again that was waiting.",
		Example: "  lightweb inbox drop alice --state poison --dry-run\n  lightweb inbox drop --all --activity https://example.org/activities/1 --yes",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			choice, err := f.choose(a, args)
			if err != nil {
				return err
			}
			switch choice.State {
			case "", admin.InboxPoison, admin.InboxWaiting:
			default:
				return fault.New(fault.Usage, fmt.Sprintf("--state %.40q is not poison or waiting", choice.State))
			}
			whose := strings.Join(args, ", ")
			if choice.All {
				whose = "every user"
			}
			if err := a.prompt.confirm(ctx, "drop what "+whose+" should get", yes || choice.DryRun); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Inboxes.Drop(ctx, choice)
				if err != nil {
					return err
				}
				if err := a.out.showInbox("dropped", r.Dropped, r); err != nil {
					return err
				}
				return inboxFailed("dropped", r.Failures)
			})
		}),
	}
	f.add(c)
	c.Flags().StringVar(&f.choice.State, "state", "", "only what is `STATE`: poison or waiting")
	c.Flags().BoolVarP(&f.choice.DryRun, "dry-run", "n", false, "change nothing, and report what would be done")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}
