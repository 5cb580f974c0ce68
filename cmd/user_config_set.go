package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserConfigSet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME KEY VALUE",
		Short: "Change the configuration of a user",
		Long: "set writes one value into the config.json of the user NAME: a text as it is, true or false, or a\n" +
			"list as JSON. An empty VALUE empties a text. The other values stay as they are. set refuses a\n" +
			"bad value and changes nothing (exit code 65). Mend a broken file first (exit code 78).",
		Example: "  lightweb user config set alice profile.name 'Alice Example'\n  lightweb user config set alice discoverable true\n" +
			"  lightweb user config set alice profile.fields '[{\"name\":\"Home\",\"value\":\"https://example.org\"}]'",
		Args: takesArgs("NAME", "KEY", "VALUE"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				if err := t.Configs.Set(ctx, user, args[1], args[2]); err != nil {
					return err
				}
				c, err := t.Configs.Find(ctx, user)
				if err != nil {
					return err
				}
				value, err := c.Value(args[1])
				if err != nil {
					return err
				}
				return a.out.writeDone(strings.Join([]string{"set", args[1], "of", user.String()}, " "), shownMember{user, args[1], value})
			})
		}),
	}
}
