package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newInboxRetry(a *app) *cobra.Command {
	var f inboxFlags
	c := &cobra.Command{
		Use:   "retry [USER…|--all] [flags]",
		Short: "Apply activities again that were set aside",
		Long: "retry gives back the activities that were set aside for every USER. The running engine applies\n" +
			"them within seconds; without one, the engine does so when it starts. An activity that fails\n" +
			"again is set aside again. A waiting activity needs no retry: the engine applies it as soon as it\n" +
			"can use the user's database.",
		Example: "  lightweb inbox retry --all --dry-run\n  lightweb inbox retry alice",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			choice, err := f.choose(a, args)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Inboxes.Retry(ctx, choice)
				if err != nil {
					return err
				}
				if err := a.out.showInbox("given back", r.Retried, r); err != nil {
					return err
				}
				return inboxFailed("given back", r.Failures)
			})
		}),
	}
	f.add(c)
	c.Flags().BoolVarP(&f.choice.DryRun, "dry-run", "n", false, "change nothing, and report what would be done")
	return c
}

// showInbox writes how many activities were retried or dropped, and which of them failed.
func (p *printer) showInbox(what string, done int, r admin.InboxReport) error {
	title := fmt.Sprintf("%d %s, %d failed", done, what, len(r.Failures))
	switch {
	case r.DryRun:
		title = fmt.Sprintf("%d would be %s", r.Matched, what)
	case len(r.Failures) == 0:
		title = p.tick() + " " + title
	}
	facts := []fact{
		{key: "matched", value: strconv.Itoa(r.Matched), titled: true},
		{key: "retried", value: strconv.Itoa(r.Retried), titled: true},
		{key: "dropped", value: strconv.Itoa(r.Dropped), titled: true},
		{key: "failed", value: strconv.Itoa(len(r.Failures)), titled: true},
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}
	for _, f := range r.Failures {
		facts = append(facts, fact{key: "failure", value: fmt.Sprintf("%s %s: %s", f.User, f.Activity, f.Error)})
	}
	return p.writeFacts(title, facts, r)
}
