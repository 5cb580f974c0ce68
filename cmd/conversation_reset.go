package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newConversationReset(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "reset USER ID [flags]",
		Short: "Ask for a new MLS group of a conversation",
		Long: "reset asks the members for a new MLS group in the conversation ID that USER hosts, when the\n" +
			"members cannot continue with the present group. Until a member's program creates the new group,\n" +
			"members can read the log and cannot send. A second reset names the same group. A running engine\n" +
			"follows at once and tells the user. Exit code 66: USER hosts no such conversation. Exit code 73:\n" +
			"the conversation is closed.",
		Example: "  lightweb conversation reset alice 0192d3a4-0000-7000-8000-000000000000 --yes",
		Args:    takesArgs("USER", "ID"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, id, err := parseConversation(args)
			if err != nil {
				return err
			}
			if err := a.prompt.confirm(ctx, "give up the MLS group of "+id.String(), yes); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Conversations.Reset(ctx, user, id)
				if err != nil {
					return err
				}
				words := "a reset was pending already; the group that comes next is "
				if r.IsNew {
					words = "a reset is pending; the group that comes next is "
				}
				return a.out.writeDone(words+r.Group, r)
			})
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}
