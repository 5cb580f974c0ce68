package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newUserConfigCheck(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "check [NAME…] [flags]",
		Short: "Check the configuration of users",
		Long: "check reads the config.json of users as a running engine does, and tells the mistakes. A user\n" +
			"without a file has the defaults.\n\n" +
			"In a pipe it writes a line per user with name, file and mistake, separated by tabs. Exit code\n" +
			"78: the engine cannot use a file. It keeps the last good one, and after a restart it closes the\n" +
			"user to others.",
		Example: "  lightweb user config check alice\n  lightweb user config check --all",
		Args:    takesArgs("[NAME…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			users, err := a.usersOrAll(args, all)
			if err != nil {
				return err
			}
			var checked []admin.CheckedConfig
			err = a.admin(ctx, func(t *admin.Tasks) (err error) {
				checked, err = t.Configs.Check(ctx, users, all)
				return err
			})
			if err != nil {
				return err
			}
			return a.out.showChecked(checked)
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "check every user")
	return c
}

func (p *printer) showChecked(checked []admin.CheckedConfig) error {
	rows, broken := make([][]string, len(checked)), 0
	for i, c := range checked {
		state := "can be used"
		if !c.Valid {
			state = c.Problem
			broken++
		}
		rows[i] = []string{c.User.String(), c.File, state}
	}
	doc := struct {
		Users []admin.CheckedConfig `json:"users"`
	}{notNil(checked)}
	if err := p.writeTable([]string{"USER", "FILE", "STATE"}, rows, doc); err != nil {
		return err
	}
	if broken > 0 {
		return fault.New(fault.Config, fmt.Sprintf("%d of %d files cannot be used", broken, len(checked))).WithHint("lightweb user config edit NAME")
	}
	return nil
}
