package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserSuspend(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "suspend NAME",
		Short: "Suspend a user",
		Long: "suspend closes the user NAME. Tokens are refused, actor and posts are not shown, other servers\n" +
			"that send to the user get 410, and activities that were accepted before wait. A running engine\n" +
			"follows within seconds, and ends open event streams within a minute. suspend deletes nothing.\n" +
			"Exit code 73: the user was suspended before.",
		Example: "  lightweb user suspend alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.changeState(ctx, args[0], "suspended", admin.Users.Suspend)
		}),
	}
}

// changedState is the result of user suspend and user unsuspend.
type changedState struct {
	User  vocab.Username `json:"user"`
	State string         `json:"state"`
}

// changeState changes the state of a user. The parameter done is the word for the change in the
// result, such as suspended.
func (a *app) changeState(ctx context.Context, name, done string, change func(admin.Users, context.Context, vocab.Username) (admin.User, error)) error {
	user, err := vocab.ParseUsername(name)
	if err != nil {
		return err
	}
	return a.admin(ctx, func(t *admin.Tasks) error {
		u, err := change(t.Users, ctx, user)
		if err != nil {
			return err
		}
		return a.out.writeDone(done+" "+u.Name.String(), changedState{u.Name, u.State})
	})
}
