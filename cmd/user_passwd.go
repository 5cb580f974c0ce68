package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserPasswd(a *app) *cobra.Command {
	var from passwordSource
	var remove bool
	c := &cobra.Command{
		Use:   "passwd NAME [flags]",
		Short: "Set or remove the password of a user",
		Long: "passwd sets the password with which the user NAME signs in at POST /api/session: 8 characters to\n" +
			"1,024 bytes, without line breaks. Without a flag it asks on the terminal. It ends every session\n" +
			"that began with the old password; tokens and their sessions stay. The server stores only a hash\n" +
			"of the password (argon2id).",
		Example: "  lightweb user passwd alice\n  lightweb user passwd alice --password-file /run/secrets/alice\n  lightweb user passwd alice --remove",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if remove {
				return a.removePassword(ctx, user)
			}
			password, err := a.readPassword(ctx, from)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				if err := t.Passwords.Set(ctx, user, password); err != nil {
					return err
				}
				return a.out.writePassword(user, "set", true)
			})
		}),
	}
	from.addFlags(c)
	c.Flags().BoolVar(&remove, "remove", false, "remove the password")
	return c
}

func (a *app) removePassword(ctx context.Context, user vocab.Username) error {
	if a.givesPassword() {
		return fault.New(fault.Usage, "--remove takes no password").WithHint(a.command.CommandPath() + " --help")
	}
	return a.admin(ctx, func(t *admin.Tasks) error {
		if err := t.Passwords.Remove(ctx, user); err != nil {
			return err
		}
		return a.out.writePassword(user, "removed", false)
	})
}

func (p *printer) writePassword(user vocab.Username, done string, has bool) error {
	return p.writeDone(fmt.Sprintf("%s the password of %s", done, user), map[string]any{"user": user, "has_password": has})
}
