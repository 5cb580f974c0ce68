package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchSockets(a *app, profile *string) *cobra.Command {
	var l bench.SocketsLoad
	c := &cobra.Command{
		Use:     "sockets [flags]",
		Short:   "Measure what WebSockets take, and how soon they tell",
		Long:    "sockets opens WebSockets for many users, sends each user posts in turn, and waits for each at every socket of the user.",
		Example: "  lightweb bench sockets\n  lightweb bench sockets --sockets 4000 --users 400",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Sockets(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Sockets, "sockets", 1000, "open `N` sockets: 1000 unless given")
	f.IntVar(&l.Users, "users", 100, "of `N` users: 100 unless given")
	f.IntVar(&l.Posts, "posts", 1000, "send `N` posts: 1000 unless given")
	return addProfileFlag(c, profile)
}
