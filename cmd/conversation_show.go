package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newConversationShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show USER ID",
		Short: "Show a conversation",
		Long: "show tells everything that an operator can see of the conversation ID of USER: the members with\n" +
			"their roles, the state, the number of messages of each kind in the log, and the number of\n" +
			"Welcomes that wait. Exit code 66: there is no such conversation.",
		Example: "  lightweb conversation show alice 0192d3a4-0000-7000-8000-000000000000",
		Args:    takesArgs("USER", "ID"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, id, err := parseConversation(args)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				d, err := t.Conversations.Find(ctx, user, id)
				if err != nil {
					return err
				}
				return a.out.writeFacts(a.out.style().Bold(true).Render("conversation "+id.String()), conversationFacts(d), d)
			})
		}),
	}
}

// conversationFacts returns the facts about a conversation, with the same keys as in JSON.
func conversationFacts(d admin.ConversationDetails) []fact {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	facts := []fact{
		{key: "id", value: d.ID.String(), titled: true},
		{key: "user", value: d.User.String()},
		{key: "uri", value: string(d.URI)},
		{key: "mode", value: d.Mode},
		{key: "host", value: string(d.Host)},
		{key: "status", value: d.Status},
		{key: "group_id", value: d.GroupID},
		{key: "generation", value: number(int64(d.Generation))},
		{key: "term", value: number(int64(d.Term))},
		{key: "epoch", value: number(d.Epoch)},
		{key: "last_seq", value: number(d.LastSeq)},
		{key: "log", value: fmt.Sprintf("%d commit, %d proposal, %d application", d.Commits, d.Proposals, d.Applications)},
		{key: "welcomes_waiting", value: strconv.Itoa(d.Welcomes)},
		{key: "active_at", value: stamp(d.ActiveAt)},
	}
	if d.Reset != "" {
		facts = append(facts, fact{key: "reset_group_id", value: d.Reset})
	}
	for _, m := range d.Roster {
		words := string(m.Actor) + " " + m.Role
		if m.Leaving {
			words += ", leaving"
		}
		facts = append(facts, fact{key: "member", value: words})
	}
	return facts
}
