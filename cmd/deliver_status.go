package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDeliverStatus(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "status [USER…|--all]",
		Short: "Count deliveries by host and state",
		Long: "status counts the deliveries of every USER by host and state. It shows the time of the oldest\n" +
			"delivery, the time of the next attempt, and the reason why nothing is sent to a host now. It\n" +
			"leaves out deliveries that succeeded over a week ago.\n\n" +
			"In a pipe it writes a line per host and state with host, state, count, time of the oldest, time\n" +
			"of the next attempt, the reason and the last error, separated by tabs.",
		Example: "  lightweb deliver status --all\n  lightweb deliver status alice --json | jq .counts",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			c := admin.DeliveryChoice{All: all}
			if c.Users, err = a.usersOrAll(args, all); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				s, err := t.Deliveries.CountByHost(ctx, c)
				if err != nil {
					return err
				}
				if err := a.out.showDeliveryStatus(s); err != nil {
					return err
				}
				return usersFailed(s.Failures)
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "choose all users")
	return c
}

func (p *printer) showDeliveryStatus(s admin.DeliveryStatus) error {
	rows := make([][]string, len(s.States))
	for n, d := range s.States {
		next := ""
		if d.NextAt != nil {
			next = stamp(*d.NextAt)
		}
		rows[n] = []string{hostOf(d.Host), d.Status, strconv.Itoa(d.Count), stamp(d.Oldest), next, heldBack(d), d.Error}
	}
	return p.writeTable([]string{"HOST", "STATE", "COUNT", "OLDEST", "NEXT", "HELD BACK", "LAST ERROR"}, rows, s)
}

// heldBack returns why no deliveries are sent to a host now, or "" if they are sent.
func heldBack(d admin.DeliveryState) string {
	switch {
	case d.Paused != nil:
		return "paused since " + stamp(*d.Paused)
	case d.Inactive != nil:
		return "inactive since " + stamp(*d.Inactive)
	case d.Closed != nil:
		return "until " + stamp(*d.Closed)
	}
	return ""
}
