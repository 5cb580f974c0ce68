package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newDeliverList(a *app) *cobra.Command {
	var f deliverFlags
	var status string
	var limit int
	lines := jsonLines{app: a}
	c := &cobra.Command{
		Use:   "list [USER…|--all] [flags]",
		Short: "List what was sent, and what became of it",
		Long: "list shows the delivery jobs of every USER, the newest first. A job has one delivery for each\n" +
			"inbox that an activity goes to. A job is pending if no inbox has the activity and some\n" +
			"deliveries will be tried again, delivering while a delivery is tried, partial if only some\n" +
			"inboxes have it, delivered if all inboxes that are not skipped have it, and in error if no inbox\n" +
			"has it or will get it. --status parked, failed and skipped list the jobs with a delivery in that\n" +
			"state.\n\n" +
			"In a pipe it writes a line per job with user, job, activity, type, time, status, and the numbers\n" +
			"of deliveries in all, pending, delivered, failed and skipped, separated by tabs. --json=lines\n" +
			"writes a JSON document per line.",
		Example: "  lightweb deliver list alice --activity https://example.org/users/alice/activities/1\n  lightweb deliver list --all --host dead.example --status failed\n  lightweb deliver list --all --json=lines | jq .counts",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			choice, err := f.choose(a, args)
			if err != nil {
				return err
			}
			if choice.Limit = limit; limit < 1 || limit > maxListed {
				return fault.New(fault.Usage, fmt.Sprintf("--limit %d is not from 1 to %d", limit, maxListed))
			}
			if choice.Status = status; status != "" {
				if err := oneOf("status", status, admin.DeliveryStatuses()); err != nil {
					return err
				}
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				l, err := t.Deliveries.List(ctx, choice)
				if err != nil {
					return err
				}
				if err := a.out.showDeliveryList(l, lines.lines); err != nil {
					return err
				}
				return usersFailed(l.Failures)
			})
		}),
	}
	f.add(c)
	c.Flags().StringVar(&status, "status", "", "only jobs that are `STATUS`: "+strings.Join(admin.DeliveryStatuses(), ", "))
	c.Flags().IntVar(&limit, "limit", 50, "list at most `N` jobs: 50 unless given")
	j := c.Flags().VarPF(&lines, "json", "", "write the result as one JSON document; as one per line with --json=lines")
	j.DefValue, j.NoOptDefVal = "false", "true"
	return c
}

// jsonLines is the flag --json of a command that can also write one JSON document per line.
type jsonLines struct {
	app   *app
	lines bool
}

// Set accepts a boolean, or the word lines.
func (v *jsonLines) Set(s string) error {
	on, err := strconv.ParseBool(s)
	if v.lines = s == "lines"; err != nil && !v.lines {
		return fmt.Errorf("%.40q is not true, false or lines", s)
	}
	v.app.json = on || v.lines
	return nil
}

func (v *jsonLines) String() string { return strconv.FormatBool(v.app != nil && v.app.json) }

// Type returns an empty name, so that help shows this --json like that of every other command.
func (v *jsonLines) Type() string { return "" }

func (p *printer) showDeliveryList(l admin.DeliveryList, lines bool) error {
	if lines {
		for _, j := range l.Jobs {
			if err := p.writeLine(j); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(l.Jobs))
	for n, j := range l.Jobs {
		rows[n] = append([]string{j.User.String(), j.ID.String(), string(j.Activity), j.Type, stamp(j.CreatedAt), j.Status}, countsOf(j.JobCounts)...)
	}
	return p.writeTable([]string{"USER", "JOB", "ACTIVITY", "TYPE", "MADE", "STATUS", "TOTAL", "PENDING", "DELIVERED", "FAILED", "SKIPPED"}, rows, l)
}

func countsOf(c admin.JobCounts) []string {
	var cells []string
	for _, n := range []int{c.Total, c.Pending, c.Delivered, c.Failed, c.Skipped} {
		cells = append(cells, strconv.Itoa(n))
	}
	return cells
}
