package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBenchDispatch(a *app, profile *string) *cobra.Command {
	l := bench.DispatchLoad{}
	var shared bool
	c := &cobra.Command{
		Use:   "dispatch [flags]",
		Short: "Measure posts that go out",
		Long: "dispatch posts in the name of a user who has followers on other servers, each an address of loopback, and waits until\n" +
			"a post has arrived at all their inboxes. With --stall some servers take requests and never answer; what is measured\n" +
			"then are the others.",
		Example: "  lightweb bench dispatch\n  lightweb bench dispatch --personal --key ed25519\n  lightweb bench dispatch --stall 10",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			if err := a.exclusive("shared", "personal"); err != nil {
				return err
			}
			return a.runBenchmark(ctx, *profile, func(ctx context.Context, c bench.Config) (bench.Report, error) { return bench.Dispatch(ctx, c, l) })
		}),
	}
	f := c.Flags()
	f.IntVar(&l.Followers, "followers", 500, "have `N` followers: 500 unless given")
	f.IntVar(&l.Hosts, "hosts", 50, "on `N` servers: 50 unless given")
	f.BoolVar(&shared, "shared", false, "each server has a shared inbox: so unless --personal")
	f.BoolVar(&l.Personal, "personal", false, "every follower has an inbox only of its own")
	f.IntVar(&l.Posts, "posts", 20, "send `N` posts: 20 unless given")
	f.StringVar(&l.Key, "key", bench.KeyRSA, "let the engine sign with this `KIND` of key: rsa or ed25519")
	f.IntVar(&l.Stall, "stall", 0, "let `N` servers never answer")
	return addProfileFlag(c, profile)
}
