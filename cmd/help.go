package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/fault"
)

// newHelp replaces cobra's help command, which exits with 0 for an unknown command.
func newHelp(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Show help",
		Long:   "help shows what a command does, as --help does.",
		Args:   cobra.ArbitraryArgs,
		Hidden: true,
		RunE: a.action(func(_ context.Context, args []string) error {
			root := a.command.Root()
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return fault.New(fault.Usage, fmt.Sprintf("unknown command %.60q", strings.Join(args, " "))).WithHint("lightweb --help")
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		}),
	}
}
