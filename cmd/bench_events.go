package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchEvents(a *app, profile *string) *cobra.Command {
	var l bench.EventsLoad
	c := &cobra.Command{
		Use:   "events [flags]",
		Short: "Measure how soon events that waited for Redis are emitted",
		Long: "events stops the private Redis, sends notes to many users, lets Redis go on, and waits until the events of all\n" +
			"are on their streams.",
		Example: "  lightweb bench events\n  lightweb bench events --users 1000 --events 20",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Events(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Users, "users", 64, "send notes to `N` users: 64 unless given")
	f.IntVar(&l.Events, "events", 200, "send `N` notes to each: 200 unless given")
	f.IntVar(&l.Clients, "clients", 16, "over `N` connections: 16 unless given")
	return addProfileFlag(c, profile)
}
