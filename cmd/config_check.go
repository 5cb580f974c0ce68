package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/instance"
)

// checkedConfig is the result of config check.
type checkedConfig struct {
	Valid bool   `json:"valid"`
	File  string `json:"file,omitempty"`
}

func newConfigCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the settings",
		Long: "check reads the settings, the files that they name, the policy and the users' profiles, as serve\n" +
			"does, and tells the mistakes. Exit code 0: there is none. Exit code 78: there is one.",
		Example: "  lightweb config check --config /etc/lightweb/lightweb.toml",
		Args:    takesArgs(),
		RunE: a.action(func(context.Context, []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if err := instance.CheckFiles(c.Engine); err != nil {
				return err
			}
			words := "the settings can be used"
			if c.file != "" {
				words += ", with " + c.file
			}
			return a.out.writeDone(words, checkedConfig{true, c.file})
		}),
	}
}
