package cmd

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// shownUserConfig is the result of user config get without a key.
type shownUserConfig struct {
	User   vocab.Username `json:"user"`
	Config registry.User  `json:"config"`
}

// shownMember is the result of user config get with a key.
type shownMember struct {
	User  vocab.Username `json:"user"`
	Key   string         `json:"key"`
	Value any            `json:"value"`
}

func newUserConfigGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get NAME [KEY]",
		Short: "Show the configuration of a user",
		Long: "get shows the configuration of the user NAME: the values of its config.json, and the defaults\n" +
			"for the rest. With KEY, such as profile.name, it writes that value alone: a text as it is, other\n" +
			"values as JSON. docs/operations.md lists the members. Exit code 65: there is no such member.\n" +
			"Exit code 78: the file is broken.",
		Example: "  lightweb user config get alice\n  lightweb user config get alice profile.name",
		Args:    takesArgs("NAME", "[KEY]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			var c registry.User
			err = a.admin(ctx, func(t *admin.Tasks) (err error) {
				c, err = t.Configs.Find(ctx, user)
				return err
			})
			if err != nil {
				return err
			}
			if len(args) > 1 {
				return a.out.showMember(user, c, args[1])
			}
			return a.out.showUserConfig(user, c)
		}),
	}
}

func (p *printer) showUserConfig(user vocab.Username, c registry.User) error {
	var facts []fact
	for _, m := range registry.Members() {
		value, err := c.Value(m.Key)
		if err != nil {
			return err
		}
		shown, err := writeMember(value)
		if err != nil {
			return err
		}
		facts = append(facts, fact{key: m.Key, value: shown})
	}
	return p.writeFacts(p.style().Bold(true).Render(user.String()), facts, shownUserConfig{user, c})
}

// showMember writes one value. Line breaks in it stay, except in JSON, which escapes them.
func (p *printer) showMember(user vocab.Username, c registry.User, key string) error {
	value, err := c.Value(key)
	if err != nil {
		return err
	}
	if p.json || p.quiet {
		return p.writeDocument(shownMember{user, key, value})
	}
	shown, err := writeMember(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.w, cleanLines(shown)+"\n")
	return err
}
