package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserMove(a *app) *cobra.Command {
	var to, from string
	var yes bool
	c := &cobra.Command{
		Use:   "move NAME --to ACCOUNT|--from ACCOUNT [flags]",
		Short: "Move a user's followers to another account, or let one move here",
		Long: "move takes a user's followers along to another account, of this server or of another one. First the new account must\n" +
			"name the old one as its alias: on this server 'user move NAME --from OLD' does that. Then 'user move NAME --to NEW'\n" +
			"says so in the profile, and a running engine tells the followers within seconds: their servers look at both accounts\n" +
			"and follow the new one, most of them once in 30 days at most. Posts stay where they are. ACCOUNT is a handle or an id.\n" +
			"'user config set NAME profile.moved_to \"\"' takes the profile's word back. Exit code 73 says that the new account does\n" +
			"not name the old one.",
		Example: "  lightweb user move alice --from @alice@old.example\n  lightweb user move alice --to @alice@new.example --yes",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if (to == "") == (from == "") {
				return fault.New(fault.Usage, "give either --to or --from").WithHint("lightweb help user move")
			}
			if from != "" {
				return a.moveUser(ctx, user, from, admin.Users.MoveFrom, func(m admin.MovedUser) string {
					return fmt.Sprintf("%s is also known as %s: that account can move here", m.User, from)
				})
			}
			if err := a.prompt.confirm(ctx, "move the followers of "+user.String()+" to "+to, yes); err != nil {
				return err
			}
			return a.moveUser(ctx, user, to, admin.Users.MoveTo, func(m admin.MovedUser) string {
				return fmt.Sprintf("%s has moved to %s; the followers are told within seconds while an engine serves", m.User, m.MovedTo)
			})
		}),
	}
	c.Flags().StringVar(&to, "to", "", "the account that the user's has become")
	c.Flags().StringVar(&from, "from", "", "the account that may become the user's")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// moveUser changes the account that a user's profile names as a former or new one. The function
// done returns the words for the change in the result.
func (a *app) moveUser(ctx context.Context, user vocab.Username, account string,
	move func(admin.Users, context.Context, vocab.Username, string) (admin.MovedUser, error), done func(admin.MovedUser) string,
) error {
	return a.admin(ctx, func(t *admin.Tasks) error {
		m, err := move(t.Users, ctx, user, account)
		if err != nil {
			return err
		}
		return a.out.writeDone(done(m), m)
	})
}
