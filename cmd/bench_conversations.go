package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchConversations(a *app, profile *string) *cobra.Command {
	var l bench.ConversationsLoad
	c := &cobra.Command{
		Use:   "conversations [flags]",
		Short: "Measure encrypted conversations",
		Long: "conversations makes encrypted conversations, and measures how much memory and how many goroutines those take that are known,\n" +
			"and those that have just got a message, and how long it takes to read the epoch of one; how many commits a second are accepted:\n" +
			"one after another in one, in many of one host at once, and in one each of many hosts; and how many messages a second many\n" +
			"clients send to one. The memory is that of the measuring process, which has the same registry of conversations as the engine.",
		Example: "  lightweb bench conversations\n  lightweb bench conversations --conversations 64 --hosts 20 --commits 1000 --json",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Conversations(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Known, "known", 100_000, "make `N` conversations known: 100000 unless given")
	f.IntVar(&l.Busy, "busy", 1000, "and send a message to each of `N` of them: 1000 unless given")
	f.IntVar(&l.Conversations, "conversations", 200, "make `N` conversations beside the one that gets commits and messages alone: 200 unless given")
	f.IntVar(&l.Hosts, "hosts", 200, "and one of each of `N` other hosts: 200 unless given")
	f.IntVar(&l.Commits, "commits", 20_000, "make `N` commits to one of them, about as many to all others of its host together, and to those of the other hosts: 20000 unless given")
	f.IntVar(&l.Messages, "messages", 10_000, "send `N` messages: 10000 unless given")
	f.IntVar(&l.Clients, "clients", 64, "over `N` connections: 64 unless given")
	return addProfileFlag(c, profile)
}
