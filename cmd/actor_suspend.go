package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newActorSuspend(a *app) *cobra.Command {
	var s admin.Suspension
	c := &cobra.Command{
		Use:   "suspend URI|HANDLE [URI|HANDLE…] [flags]",
		Short: "Suspend actors of other servers",
		Long: "suspend refuses every activity of an actor of another server, whoever forwards it, and delivers\n" +
			"nothing to the actor. Other actors of that server are not affected. Earlier activities of the\n" +
			"actor are hidden, not deleted: unsuspend shows them again. The list is in registry/server.json.\n" +
			"A running engine applies a change within a second.\n\n" +
			"suspend looks up a handle or URI that this server does not know. The URI may be the address of a\n" +
			"profile page. A URI that cannot be looked up is suspended as written, with a warning. Exit code\n" +
			"73: all were suspended before. Exit code 3: some were.",
		Example: "  lightweb actor suspend @troll@good.example --comment \"threatened alice\"\n  lightweb actor suspend https://good.example/users/troll",
		Args:    takesArgs("URI|HANDLE", "[URI|HANDLE…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			s.Actors = args
			return a.changeSuspended(ctx, s, "suspended")
		}),
	}
	c.Flags().StringVar(&s.Comment, "comment", "", "keep `TEXT` with the actors")
	return c
}

// changeSuspended suspends actors, or ends their suspension. The parameter done is the word for
// the change in the result, such as suspended.
func (a *app) changeSuspended(ctx context.Context, s admin.Suspension, done string) error {
	return a.admin(ctx, func(t *admin.Tasks) error {
		r, err := t.Actors.Suspend(ctx, s)
		if len(r.Changed) == 0 || err != nil && fault.KindOf(err) != fault.Partial {
			return err
		}
		if shown := a.out.writeDone(done+" "+joinIDs(r.Changed), r); shown != nil {
			return shown
		}
		if len(r.Unconfirmed) > 0 {
			a.notices.warn("suspended as written, because nobody could be asked whether that is an actor's id: %s", joinIDs(r.Unconfirmed))
		}
		if r.Users > 0 {
			a.notices.warn("users here who know the suspended: %d; who may follow them: %d", r.Users, r.Following)
		}
		return err
	})
}

func joinIDs(ids []vocab.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, " ")
}
