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
		Long: "acquaint rebuilds the table that says which actors may concern which users. It reads the\n" +
			"databases of the USERs, or of all users with --all. Run it after you restored the database of a\n" +
			"user, or that of the instance, alone: an activity of an actor that is missing in the table does\n" +
			"not reach the user.\n\n" +
			"acquaint adds missing rows, also beside a running engine. A superfluous row does no harm.\n" +
			"acquaint removes it only if no engine runs and no accepted activity waits, and no engine can\n" +
			"start meanwhile. A running engine removes the rows that it finds superfluous in two nights: see\n" +
			"prune. Only one acquaint runs at a time: a second one ends with exit code 75.",
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
