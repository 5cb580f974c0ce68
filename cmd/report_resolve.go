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
		Long: "resolve closes reports: the operator has seen to them. Nobody outside is told. A report that is closed stays so, and\n" +
			"takes a new note. Exit code 3 says that some of the reports do not exist, 66 that none does.",
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
