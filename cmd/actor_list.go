package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newActorList(a *app) *cobra.Command {
	var suspended bool
	c := &cobra.Command{
		Use:   "list --suspended",
		Short: "List suspended actors",
		Long: "list shows the actors of other servers that are suspended. In a pipe: a line per actor with id, handle and comment,\n" +
			"separated by tabs.",
		Example: "  lightweb actor list --suspended",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			if !suspended {
				return fault.New(fault.Usage, "say which actors: --suspended").WithHint("lightweb actor list --suspended")
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				actors, err := t.Actors.ListSuspended(ctx)
				if err != nil {
					return err
				}
				rows := make([][]string, len(actors))
				for i, s := range actors {
					rows[i] = []string{string(s.ID), s.Handle, s.Comment}
				}
				return a.out.writeTable([]string{"ID", "HANDLE", "COMMENT"}, rows, struct {
					Actors []admin.SuspendedActor `json:"actors"`
				}{actors})
			})
		}),
	}
	c.Flags().BoolVar(&suspended, "suspended", false, "list the suspended actors")
	return c
}
