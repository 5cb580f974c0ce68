package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchFanout(a *app, profile *string) *cobra.Command {
	l := bench.FanoutLoad{}
	c := &cobra.Command{
		Use:   "fanout [flags]",
		Short: "Measure notes that come in for everybody",
		Long: "fanout makes users who all follow a remote actor, sends each of its posts once to the shared inbox, and waits until\n" +
			"every user has it. --connections sets database.max_connections of the engine: with fewer than users, connections are\n" +
			"opened for most writes. Several numbers are measured one after the other.",
		Example: "  lightweb bench fanout --users 100\n  lightweb bench fanout --connections 1000,64",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Fanout(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Users, "users", 1000, "make `N` users: 1000 unless given")
	f.IntVar(&l.Posts, "posts", 20, "send `N` posts: 20 unless given")
	f.IntSliceVar(&l.Connections, "connections", []int{64}, "let the engine hold `N` connections: 64 unless given")
	f.BoolVar(&l.Cold, "cold", false, "restart the engine before each post")
	return addProfileFlag(c, profile)
}
