package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchInbox(a *app, profile *string) *cobra.Command {
	l := bench.InboxLoad{}
	c := &cobra.Command{
		Use:   "inbox [flags]",
		Short: "Measure notes that come in for single users",
		Long: "inbox sends signed notes of about 1.2 KB from a remote actor to the personal inboxes of users who follow it, and counts\n" +
			"what the users have afterwards. With --rate it measures how long each is kept waiting at that rate, counted from when\n" +
			"it was due.",
		Example: "  lightweb bench inbox\n  lightweb bench inbox --rate 500 --json\n  lightweb bench inbox --stored 1000000",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Inbox(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Users, "users", 1, "send to `N` users in turn: 1 unless given")
	f.IntVar(&l.Activities, "activities", 20_000, "send `N` notes: 20000 unless given")
	f.IntVar(&l.Clients, "clients", 16, "over `N` connections: 16 unless given")
	f.Float64Var(&l.Rate, "rate", 0, "send `N` a second, not as fast as they are answered")
	f.IntVar(&l.Stored, "stored", 0, "give the first user `N` activities before")
	f.StringVar(&l.Key, "key", bench.KeyRSA, "sign with this `KIND` of key: rsa or ed25519")
	return addProfileFlag(c, profile)
}
