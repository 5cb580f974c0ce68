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
		Long: "suspend lets nothing in of an actor of another server, whoever passes it on, and delivers nothing to it; others on its\n" +
			"server are not concerned. Its earlier activities are hidden, and nothing is deleted: unsuspend brings it back. The list is\n" +
			"in registry/server.json, and a running server follows within a second.\n\n" +
			"A handle that is not known here is looked up, and so is a URI, which may be the address of its page. A URI that\n" +
			"cannot be looked up is suspended as it is, with a warning. Exit code 73 says that all were suspended before, 3 that\n" +
			"some were.",
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
