package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDeliverShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ACTIVITY|JOB",
		Short: "Show the deliveries of an activity",
		Long: "show tells the state of every delivery of a JOB, or of all jobs of an ACTIVITY or about the\n" +
			"object with that id: a line for the job, then a line for each inbox. Exit code 66: nothing is\n" +
			"known of it.\n\n" +
			"In a pipe it writes a line with user, job, activity, type, time, status, and the numbers of\n" +
			"deliveries in all, pending, delivered, failed and skipped; then a line for each inbox with\n" +
			"status, inbox, number of attempts, status of the last answer, time of the next attempt and the\n" +
			"last error, separated by tabs. The JSON document also has the beginning of the last answer, some\n" +
			"of its header, the time that the attempts took, and the key that signs them.",
		Example: "  lightweb deliver show https://example.org/users/alice/activities/1\n  lightweb deliver show 0192d3a4-0000-7000-8000-000000000000 --json | jq '.jobs[].deliveries[] | select(.status == \"failed\")'",
		Args:    takesArgs("ACTIVITY|JOB"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			job, id, err := jobOrActivity(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				jobs, failures, err := t.Deliveries.Show(ctx, job, id)
				if err != nil {
					return err
				}
				if err := a.out.showDeliveries(jobs); err != nil {
					return err
				}
				return usersFailed(failures)
			})
		}),
	}
}

func (p *printer) showDeliveries(jobs []admin.ShownDeliveries) error {
	doc := struct {
		Jobs []admin.ShownDeliveries `json:"jobs"`
	}{notNil(jobs)}
	if p.quiet || p.json {
		return p.writeDocument(doc)
	}
	for _, j := range jobs {
		c := j.JobCounts
		head := append([]string{j.User.String(), j.ID.String(), string(j.Activity), j.Type, stamp(j.CreatedAt), j.Status}, countsOf(c)...)
		words := strings.Join(head, "\t")
		if p.terminal {
			words = fmt.Sprintf("%s by %s, %s: %s\n  activity  %s\n  job       %s\n  %d of %d inboxes have it, %d are tried again, %d failed, %d skipped",
				j.Type, j.User, stamp(j.CreatedAt), j.Status, cleanLine(string(j.Activity)), j.ID, c.Delivered, c.Total, c.Pending, c.Failed, c.Skipped)
		}
		if err := p.writeText(words + "\n"); err != nil {
			return err
		}
		rows := make([][]string, len(j.Deliveries))
		for n, d := range j.Deliveries {
			next, code := "", ""
			if d.NextAt != nil {
				next = stamp(*d.NextAt)
			}
			if d.LastStatus != 0 {
				code = strconv.Itoa(d.LastStatus)
			}
			rows[n] = []string{d.Status, string(d.Inbox), strconv.Itoa(d.Attempts), code, next, d.Error}
		}
		if err := p.writeTable([]string{"STATUS", "INBOX", "ATTEMPTS", "ANSWER", "NEXT", "LAST ERROR"}, rows, nil); err != nil {
			return err
		}
	}
	return nil
}
