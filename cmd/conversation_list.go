package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newConversationList(a *app) *cobra.Command {
	var all bool
	var limit int
	c := &cobra.Command{
		Use:   "list [USER…|--all] [flags]",
		Short: "List conversations",
		Long: "list shows the conversations of every USER, the last changed first. A conversation whose host is\n" +
			"another server has no status and no epoch here.\n\n" +
			"In a pipe it writes a line per conversation with user, id, mode, status, epoch, number of\n" +
			"members, host and time of the last change, separated by tabs. The JSON document also has the\n" +
			"total.",
		Example: "  lightweb conversation list alice\n  lightweb conversation list --all --json | jq -r '.conversations[] | select(.status == \"reset_pending\").id'",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			users, err := a.usersOrAll(args, all)
			if err != nil {
				return err
			}
			if limit < 1 || limit > maxListed {
				return fault.New(fault.Usage, fmt.Sprintf("--limit %d is not from 1 to %d", limit, maxListed))
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				l, err := t.Conversations.List(ctx, users, all, limit)
				if err != nil {
					return err
				}
				rows := make([][]string, len(l.Conversations))
				for n, c := range l.Conversations {
					rows[n] = []string{c.User.String(), c.ID.String(), c.Mode, c.Status, strconv.FormatInt(c.Epoch, 10), strconv.Itoa(c.Members), string(c.Host), stamp(c.ActiveAt)}
				}
				if err := a.out.writeTable([]string{"USER", "ID", "MODE", "STATUS", "EPOCH", "MEMBERS", "HOST", "ACTIVE"}, rows, l); err != nil {
					return err
				}
				return usersFailed(l.Failures)
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "choose all users")
	c.Flags().IntVar(&limit, "limit", 100, "list at most `N` conversations: 100 unless given")
	return c
}
