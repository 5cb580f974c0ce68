package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newKeyPackageStats(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "stats [USER…|--all] [flags]",
		Short: "Count the key packages of users",
		Long: "stats counts the key packages of every USER: available ones (one-time and last-resort), those\n" +
			"that a claim consumed, expired ones, and the devices that others can add.\n\n" +
			"In a pipe it writes a line per user with user, available, one-time, last resort, consumed,\n" +
			"expired and devices, separated by tabs.",
		Example: "  lightweb keypackage stats --all\n  lightweb keypackage stats --all --json | jq -r '.users[] | select(.devices > 0 and .one_time < 5).user'",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			users, err := a.usersOrAll(args, all)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				l, err := t.KeyPackages.Stats(ctx, users, all)
				if err != nil {
					return err
				}
				rows := make([][]string, len(l.Users))
				for n, s := range l.Users {
					rows[n] = []string{s.User.String()}
					for _, count := range []int{s.Available, s.OneTime, s.LastResort, s.Claimed, s.Expired, s.Devices} {
						rows[n] = append(rows[n], strconv.Itoa(count))
					}
				}
				if err := a.out.writeTable([]string{"USER", "AVAILABLE", "ONE-TIME", "LAST RESORT", "CONSUMED", "EXPIRED", "DEVICES"}, rows, l); err != nil {
					return err
				}
				return usersFailed(l.Failures)
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "choose all users")
	return c
}
