package cmd

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newCacheRebuild(a *app) *cobra.Command {
	c := admin.RebuildChoice{}
	var all bool
	cmd := &cobra.Command{
		Use:   "rebuild [USER…|--all] [flags]",
		Short: "Make the cache of feeds again",
		Long: "rebuild deletes the cached feed pages of every USER and makes the first pages again, while the\n" +
			"engine serves. Readers never need it: the engine reads a page or document that is not cached\n" +
			"from the database. Run it after Redis was emptied, or to free memory. It leaves streams and\n" +
			"sessions alone.\n\n" +
			"--objects also deletes the documents of posts and activities, and --actors the documents of\n" +
			"actors. --flush deletes all of these and makes nothing again. Without a running engine rebuild\n" +
			"makes nothing; a private Redis then has nothing to delete, and the command ends with 0. Only one\n" +
			"rebuild runs at a time: a second one ends with exit code 75.\n\n" +
			"In a pipe it writes a line per user with user, deleted keys, feeds, pages, entries, milliseconds\n" +
			"and error, separated by tabs. Exit code 3: some users failed.",
		Example: "  lightweb cache rebuild alice\n  lightweb cache rebuild --all --warm-pages 1 --quiet\n  lightweb cache rebuild alice bob --flush --dry-run",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if c.Users, err = a.usersOrAll(args, all); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				var end func()
				c.Progress, end = a.notices.progress("rebuilding caches")
				r, err := t.Caches.Rebuild(ctx, c)
				end()
				if err != nil {
					return err
				}
				if err := a.out.showRebuilt(r); err != nil {
					return err
				}
				return someFailed(r.Failed, len(r.Users), "users have no new cache", "lightweb db status")
			})
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "rebuild the caches of all users")
	f.StringSliceVar(&c.Feeds, "feed", nil, "only this `FEED`: main, notifications or requests; may be given many times")
	f.BoolVar(&c.Objects, "objects", false, "delete the documents of posts and activities too")
	f.BoolVar(&c.Actors, "actors", false, "delete how actors are shown too")
	f.BoolVar(&c.Flush, "flush", false, "delete everything that is cached of the users, and make nothing again")
	f.IntVar(&c.WarmPages, "warm-pages", 2, "make `N` pages of each feed again, of cache.page_entries each: 2 unless given")
	f.BoolVarP(&c.DryRun, "dry-run", "n", false, "change nothing, and report what would be deleted")
	return cmd
}

func (p *printer) showRebuilt(r admin.RebuildReport) error {
	if r.Skipped {
		return p.writeDone("no engine serves that keeps a cache: nothing to rebuild", r)
	}
	rows := make([][]string, len(r.Users))
	for n, u := range r.Users {
		rows[n] = []string{u.User.String(), strconv.Itoa(u.Deleted), strconv.Itoa(u.Feeds), strconv.Itoa(u.Pages), strconv.Itoa(u.Objects),
			(time.Duration(u.Millis) * time.Millisecond).String(), u.Error}
	}
	return p.writeTable([]string{"user", "deleted keys", "feeds", "pages", "entries", "took", "failure"}, rows, r)
}
