package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// createdUser is the result of user create.
type createdUser struct {
	User          vocab.Username `json:"user"`
	Actor         vocab.ID       `json:"actor"`
	Handle        string         `json:"handle"`
	Database      string         `json:"database"`
	SchemaVersion int            `json:"schema_version"`
	Keys          []string       `json:"keys"`
	Token         string         `json:"token,omitempty"`
	Created       bool           `json:"created"`
}

func newUserCreate(a *app) *cobra.Command {
	var n admin.NewUser
	var from passwordSource
	var ifNotExists bool
	c := &cobra.Command{
		Use:   "create NAME [flags]",
		Short: "Make a user",
		Long: "create makes a user: keys, a database, and an actor that others can follow. NAME has 1 to 30 of\n" +
			"the characters a-z, 0-9 and _. The name of a deleted user cannot be used again. To finish an\n" +
			"interrupted create, run it again.\n\n" +
			"--token also makes a token with the scopes read and write, and shows it this once. With a\n" +
			"password the user signs in at POST /api/session. 'user passwd' sets a password later, and its\n" +
			"help has the rules for passwords.",
		Example: "  lightweb user create alice --display-name 'Alice Example'\n  lightweb user create bob --token --if-not-exists --json",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if n.Token && a.quiet {
				return fault.New(fault.Usage, "--quiet would hide the token, which is shown once only")
			}
			if n.Name, err = vocab.ParseUsername(args[0]); err != nil {
				return err
			}
			if a.givesPassword() {
				if n.Password, err = a.readPassword(ctx, from); err != nil {
					return err
				}
			}
			return a.admin(ctx, func(t *admin.Tasks) error { return a.createUser(ctx, t, n, ifNotExists) })
		}),
	}
	c.Flags().StringVar(&n.DisplayName, "display-name", "", "the `NAME` that people see")
	from.addFlags(c)
	c.Flags().BoolVar(&n.Token, "token", false, "make a token too, and show it")
	c.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "succeed when the user is there already")
	return c
}

func (a *app) createUser(ctx context.Context, t *admin.Tasks, n admin.NewUser, ifNotExists bool) error {
	u, token, err := t.Users.Create(ctx, n)
	created := err == nil
	if err != nil && !(ifNotExists && fault.KindOf(err) == fault.Conflict && !u.Name.IsZero()) {
		return err
	}
	if n.Token && !created {
		a.notices.warn("%s exists already, and no token was made: lightweb user token create %s", n.Name, n.Name)
	}
	if n.Password != "" && !created {
		a.notices.warn("%s exists already, and its password was left as it is: lightweb user passwd %s", n.Name, n.Name)
	}
	title := fmt.Sprintf("%s created %s", a.out.tick(), a.out.style().Bold(true).Render(n.Name.String()))
	if !created {
		title = n.Name.String() + " exists already"
	}
	facts := userFacts(u)
	if token != "" {
		facts = append(facts, fact{key: "token", value: token, note: " — shown once; use it as 'Authorization: Bearer …'"})
	}
	facts = append(facts, fact{key: "created", value: fmt.Sprint(created), titled: true})
	return a.out.writeFacts(title, facts, createdUser{u.Name, u.Actor, u.Handle, u.Database, u.SchemaVersion, u.Keys, token, created})
}
