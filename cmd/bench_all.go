package cmd

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
	"github.com/lightweb/lightweb/engine/fault"
)

func newBenchAll(a *app) *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "all [flags]",
		Short: "Measure everything that has a target",
		Long: "all runs every benchmark at the sizes of the targets, which takes some ten minutes. With --markdown it writes a page\n" +
			"for people, and leaves what is below the line '" + bench.Handwritten + "' of that file as it is.",
		Example: "  lightweb bench all --json\n  lightweb bench all --markdown docs/benchmarks.md",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			c, err := a.benchConfig("")
			if err != nil {
				return err
			}
			reports, err := bench.All(ctx, c)
			if err != nil {
				return err
			}
			if page != "" {
				if err := writePage(page, reports); err != nil {
					return err
				}
			}
			return a.out.showReports(reports, struct {
				Reports []bench.Report `json:"reports"`
			}{reports})
		}),
	}
	c.Flags().Var(newFlagText(&page, "FILE"), "markdown", "write the figures as a page to FILE too")
	return c
}

// writePage writes the reports as a page to file, and keeps the handwritten part of the old
// page.
func writePage(file string, reports []bench.Report) error {
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return fault.New(fault.Conflict, "cannot read "+file+": "+reason(err))
	}
	if err := os.WriteFile(file, []byte(bench.Markdown(reports, string(before))), 0o644); err != nil {
		return fault.New(fault.Conflict, "cannot write "+file+": "+reason(err))
	}
	return nil
}
