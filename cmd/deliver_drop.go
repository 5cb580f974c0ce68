package cmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newDeliverDrop(a *app) *cobra.Command {
	var hosts []string
	var activity string
	var dryRun, yes bool
	c := &cobra.Command{
		Use:   "drop JOB|--host HOST|--activity URI [flags]",
		Short: "Drop deliveries that are still owed",
		Long: "drop skips the pending and parked deliveries of a JOB, of an activity, or of all users to a\n" +
			"host. The engine does not try them again. A delivery that is being tried now is left alone and\n" +
			"counted as delivering: run drop again if it fails.",
		Example: "  lightweb deliver drop --host dead.example --dry-run\n  lightweb deliver drop --activity https://example.org/users/alice/activities/1 --yes",
		Args:    takesArgs("[JOB]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			var c admin.DeliveryChoice
			if c.Hosts, err = parseHosts(hosts); err != nil {
				return err
			}
			what := "drop what is owed"
			if len(args) > 0 {
				if c.Job, c.Activity, err = jobOrActivity(args[0]); err != nil {
					return err
				}
				what += " of " + args[0]
			}
			if (len(args) > 0) == (len(hosts) > 0 || activity != "") {
				return fault.New(fault.Usage, "give either a job, or --host or --activity").WithHint(a.command.CommandPath() + " --help")
			}
			if activity != "" {
				if c.Activity, err = vocab.ParseID(activity); err != nil {
					return err
				}
				what += " of " + activity
			}
			if len(hosts) > 0 {
				what += fmt.Sprintf(" to %q", hosts)
			}
			if err := a.prompt.confirm(ctx, what, yes || dryRun); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Deliveries.Drop(ctx, c, dryRun)
				if err != nil {
					return err
				}
				if err := a.out.showDropped(r); err != nil {
					return err
				}
				return usersFailed(r.Failures)
			})
		}),
	}
	c.Flags().StringSliceVar(&hosts, "host", nil, "deliveries of all users to `HOST`; may be given several times")
	c.Flags().StringVar(&activity, "activity", "", "deliveries of the activity with the id `URI`, or about the object that has it")
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "change nothing, and report what would be done")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

func (p *printer) showDropped(r admin.DropReport) error {
	title := fmt.Sprintf("%d deliveries dropped", r.Dropped)
	switch {
	case r.DryRun:
		title = fmt.Sprintf("%d deliveries would be dropped", r.Matched)
	case len(r.Failures) == 0:
		title = p.tick() + " " + title
	}
	if r.Delivering > 0 {
		title += fmt.Sprintf("; %d are being tried now and were left alone", r.Delivering)
	}
	return p.writeFacts(title, []fact{
		{key: "matched", value: strconv.Itoa(r.Matched), titled: true},
		{key: "dropped", value: strconv.Itoa(r.Dropped), titled: true},
		{key: "delivering", value: strconv.Itoa(r.Delivering), titled: true},
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}, r)
}
