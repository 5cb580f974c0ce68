package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newRelayList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list [flags]",
		Short: "List relays",
		Long: "list shows the relays with the state of the Follow that this server sent to each: pending,\n" +
			"accepted or rejected. In a pipe it writes a line per relay with actor, style, state, time of the\n" +
			"last change, and inbox, separated by tabs.",
		Example: "  lightweb relay list\n  lightweb relay list --json | jq -r '.relays[] | select(.state == \"pending\").actor'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				relays, err := t.Relays.List(ctx)
				if err != nil {
					return err
				}
				rows := make([][]string, len(relays))
				for i, r := range relays {
					rows[i] = []string{string(r.Actor), r.Style, r.State, stamp(r.UpdatedAt), string(r.Inbox)}
				}
				doc := struct {
					Relays []admin.Relay `json:"relays"`
				}{relays}
				return a.out.writeTable([]string{"ACTOR", "STYLE", "STATE", "SINCE", "INBOX"}, rows, doc)
			})
		}),
	}
}
