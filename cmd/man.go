package cmd

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/lightweb/lightweb/engine/fault"
)

func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages",
		Long:    "man writes a manual page per command into the folder DIR.",
		Example: "  lightweb man /usr/local/share/man/man1",
		Args:    takesArgs("DIR"),
		Hidden:  true, // only makers of packages need it
		RunE: a.action(func(_ context.Context, args []string) error {
			root := a.command.Root()
			root.DisableAutoGenTag = true // a page must not depend on the date
			err := os.MkdirAll(args[0], 0o755)
			if err == nil {
				err = doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "Lightweb", Manual: "Lightweb"}, args[0])
			}
			if err != nil {
				return fault.Wrap(fault.Conflict, "cannot write the manual pages: "+reason(err), err)
			}
			return a.out.writeDone("wrote the manual pages to "+args[0], map[string]any{"dir": args[0]})
		}),
	}
}
