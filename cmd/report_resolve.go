package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newReportResolve(a *app) *cobra.Command {
	var note string
	c := &cobra.Command{
		Use:   "resolve ID [ID…] [flags]",
		Short: "Close reports",
		Long: "resolve closes reports that the operator has dealt with. It tells no other server. A closed\n" +
			"report takes a new note and stays closed. Exit code 3: some of the reports do not exist. Exit\n" +
			"code 66: none does.",
		Example: "  lightweb report resolve 12 --note \"spoke with alice\"",
		Args:    takesArgs("ID", "[ID…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			ids, err := reportIDs(args)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				resolved, missing := t.Reports.Resolve(ctx, ids, note)
				if len(resolved) == 0 {
					return missing
				}
				words := strings.Trim(fmt.Sprint(resolved), "[]")
				if err := a.out.writeDone("resolved "+words, map[string]any{"resolved": resolved, "note": note}); err != nil {
					return err
				}
				return missing
			})
		}),
	}
	c.Flags().StringVar(&note, "note", "", "keep `TEXT` with the reports")
	return c
}
