package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchDeliver(a *app, profile *string) *cobra.Command {
	l := bench.DeliverLoad{}
	c := &cobra.Command{
		Use:   "deliver [flags]",
		Short: "Measure deliveries to other servers, in good times and bad ones",
		Long: "deliver lets users who have followers on other servers post. reach: how long a post takes to all inboxes, shared and\n" +
			"personal. backlog: how many deliveries a second go out when many posts are made at once, signed with RSA and with\n" +
			"Ed25519, and what a delivery and its signature cost; one signature is timed beforehand, and counted once for each\n" +
			"delivery. stall: how long the others wait when some servers take requests and never answer. dead: how long they wait\n" +
			"when very many deliveries are owed to one server that is dead, how often that is tried, and how fast it is served once\n" +
			"it is back; these deliveries are put into the database as the engine would have them after days.",
		Example: "  lightweb bench deliver\n  lightweb bench deliver --parts reach,stall --posts 5\n  lightweb bench deliver --parts dead --parked",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Deliver(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&l.Parts, "parts", bench.DeliverParts, "measure these `PARTS` only: reach, backlog, stall, dead")
	f.IntVar(&l.Followers, "followers", 500, "have `N` followers: 500 unless given")
	f.IntVar(&l.Hosts, "hosts", 50, "on `N` servers: 50 unless given")
	f.IntVar(&l.Posts, "posts", 20, "send `N` posts one after the other: 20 unless given")
	f.IntVar(&l.Backlog, "backlog", 20, "send `N` posts at once: 20 unless given")
	f.IntVar(&l.Stall, "stall", 10, "let `N` servers never answer: 10 unless given")
	f.IntVar(&l.Owed, "owed", 100_000, "owe `N` deliveries to the dead server: 100000 unless given")
	f.IntVar(&l.Back, "back", 10_000, "wait for `N` of them once it is back: 10000 unless given")
	f.BoolVar(&l.Parked, "parked", false, "let the server be dead for so long that they are parked")
	return addProfileFlag(c, profile)
}
