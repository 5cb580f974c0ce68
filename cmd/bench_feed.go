package cmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchFeed(a *app, profile *string) *cobra.Command {
	l := bench.FeedLoad{Duration: 5 * time.Second}
	c := &cobra.Command{
		Use:   "feed [flags]",
		Short: "Measure how fast a client reads",
		Long: "feed reads the first page, of 20, of a user's feed over the client API for a while, and then, as another server does, that of\n" +
			"the outbox. --uncached reads the feed from the database alone.",
		Example: "  lightweb bench feed\n  lightweb bench feed --items 100000 --clients 4 --duration 30s",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Feed(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Items, "items", 500, "of `N` items: 500 unless given")
	f.IntVar(&l.Clients, "clients", 16, "over `N` connections: 16 unless given")
	f.BoolVar(&l.Uncached, "uncached", false, "without Redis, and so without a cache")
	f.Var((*span)(&l.Duration), "duration", "for `DURATION`: 5s unless given")
	return addProfileFlag(c, profile)
}
