package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDBAcquaint(a *app) *cobra.Command {
	var p admin.AcquaintOptions
	var all bool
	c := &cobra.Command{
		Use:   "acquaint [USER…] [flags]",
		Short: "Make the acquaintances again from the users' databases",
		Long: "acquaint makes the table again that says which actors may concern which users, from the databases of the USERs; of\n" +
			"everybody with --all. It is wanted after a backup of a user or of the instance was restored alone: what is missing\n" +
			"there does not reach the user.\n\n" +
			"A missing row is added, beside a running server too. A superfluous one does no harm, and is removed only while\n" +
			"no server runs and none has left anything to be applied: a server notes an acquaintance before it stores what asks\n" +
			"for it. While it removes, no server can start. A running server removes what two nights find superfluous: see prune.\n" +
			"One runs at a time: another one ends with 75.",
		Example: "  lightweb db acquaint alice --dry-run\n  lightweb db acquaint --all",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if p.Users, err = a.usersOrAll(args, all); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				var end func()
				p.Progress, end = a.notices.progress("reading databases")
				r, err := t.Databases.Acquaint(ctx, p)
				end()
				if err != nil {
					return err
				}
				if err := a.out.showAcquainted(r); err != nil {
					return err
				}
				return someFailed(r.Failed, len(r.Users), "databases could not be read", "lightweb db status")
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "read the databases of all users")
	c.Flags().BoolVarP(&p.DryRun, "dry-run", "n", false, "change nothing, and report what would be changed")
	return c
}

func (p *printer) showAcquainted(r admin.AcquaintReport) error {
	added, removed := "added", "removed"
	switch {
	case r.DryRun && r.Removed:
		added, removed = "to add", "to remove"
	case r.DryRun:
		added, removed = "to add", "superfluous"
	case !r.Removed:
		removed = "superfluous and left"
	}
	title := fmt.Sprintf("%d %s, %d %s, %d users, %d failed", r.Added, added, r.Superfluous, removed, len(r.Users), r.Failed)
	if !r.DryRun && r.Failed == 0 {
		title = p.tick() + " " + title
	}
	facts := []fact{
		{key: "users", value: strconv.Itoa(len(r.Users)), titled: true},
		{key: "added", value: strconv.Itoa(r.Added), titled: true},
		{key: "superfluous", value: strconv.Itoa(r.Superfluous), titled: true},
		{key: "removed", value: strconv.FormatBool(r.Removed), titled: true},
		{key: "failed", value: strconv.Itoa(r.Failed), titled: true},
		{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true},
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}
	for _, u := range r.Users {
		if u.Error != "" {
			facts = append(facts, fact{key: "failure", value: u.User.String() + ": " + u.Error})
		}
	}
	return p.writeFacts(title, facts, r)
}
