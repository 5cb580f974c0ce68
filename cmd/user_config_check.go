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
		Short: "Check what users have settled",
		Long: "check reads the config.json of users as a running engine does, and tells what is wrong. A user without one has the\n" +
			"defaults. In a pipe: a line per user with name, file and what is wrong, separated by tabs. Exit code 78: a file cannot\n" +
			"be used; the last good one holds meanwhile, and after a restart the user is closed to others.",
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
