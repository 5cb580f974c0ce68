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
		Long: "move takes a user's followers along to another account, on this server or another one. First the\n" +
			"new account must name the old one as its alias: 'user move NAME --from OLD' does that for an\n" +
			"account here. Then 'user move NAME --to NEW' writes the new account into the profile, and a\n" +
			"running engine tells the followers within seconds. Their servers look at both accounts and\n" +
			"follow the new one; most servers do so once in 30 days at most. Posts stay where they are.\n" +
			"ACCOUNT is a handle or an id. 'user config set NAME profile.moved_to \"\"' removes the new account\n" +
			"from the profile. Exit code 73: the new account does not name the old one.",
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
	c.Flags().StringVar(&to, "to", "", "the new `ACCOUNT` of the user")
	c.Flags().StringVar(&from, "from", "", "an old `ACCOUNT` that may move here")
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
