package cmd

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newPrune(a *app) *cobra.Command {
	var p admin.PruneOptions
	var all bool
	c := &cobra.Command{
		Use:   "prune [USER…] [flags]",
		Short: "Remove old posts and reactions of others",
		Long: "prune removes posts and reactions of others that arrived more than retention.remote_days ago,\n" +
			"and their entries in feeds, from the databases of the USERs, or of all users with --all. A\n" +
			"running server does so every night.\n\n" +
			"These stay: the user's own posts, posts that the user liked, boosted or answered, posts of\n" +
			"contacts that are addressed to the user, relationships, posts that a followed actor features,\n" +
			"and every post that one of these answers. Contacts are the actors that the user follows, is\n" +
			"friends with, has in a group, wrote to, or takes private messages of. prune remembers the ids,\n" +
			"so a pruned post does not come back. With --all prune also removes reports that were resolved as\n" +
			"long ago, and stored actors of other servers that nobody here knows and that had nothing to do\n" +
			"with anybody here for 30 days. It remembers for a year that an actor is deleted.\n\n" +
			"prune marks an acquaintance with an actor if the user's database has nothing of that actor. It\n" +
			"removes the acquaintance if the database still has nothing 12 hours later or more.\n\n" +
			"Of deliveries that succeeded over a week ago prune keeps the recipients only. It removes the\n" +
			"outcomes of an activity after delivery.retention. It gives up deliveries to hosts that were away\n" +
			"for 8 days, or 30 days for a Delete, Undo or Move. It removes messages of encrypted\n" +
			"conversations after conversations.retention, but keeps the newest 10,000 commits (64 MiB) of an\n" +
			"open conversation.\n\n" +
			"prune works in small steps beside a running server, and rests between them. If it is stopped,\n" +
			"its finished steps stay done. Only one prune runs at a time: a second one ends with exit code\n" +
			"75. --dry-run does not count what goes only because something else is gone, such as copies of\n" +
			"actors.",
		Example: "  lightweb prune alice --dry-run\n  lightweb prune --all --days 90",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if a.command.Flags().Changed("days") && p.Days < 1 {
				return fault.New(fault.Usage, fmt.Sprintf("--days %d is not at least 1", p.Days))
			}
			if p.Users, err = a.usersOrAll(args, all); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				var end func()
				p.Progress, end = a.notices.progress("pruning databases")
				r, err := t.Databases.Prune(ctx, p)
				end()
				if err != nil {
					return err
				}
				if err := a.out.showPruned(r); err != nil {
					return err
				}
				return someFailed(r.Failed, len(r.Users), "databases could not be pruned", "lightweb db status")
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "prune the databases of all users")
	c.Flags().BoolVarP(&p.DryRun, "dry-run", "n", false, "change nothing, and report what would be removed")
	c.Flags().IntVar(&p.Days, "days", 0, "take what arrived more than `N` days ago for old: retention.remote_days unless given")
	return c
}

func (p *printer) showPruned(r admin.PruneReport) error {
	words := "pruned"
	if r.DryRun {
		words = "to prune"
	}
	took := time.Duration(r.Millis) * time.Millisecond
	title := fmt.Sprintf("%d activities, %d objects, %d reactions, %d actors, %d deliveries, %d jobs and %d reports %s in %d databases in %s, %d failed",
		r.Activities, r.Objects, r.Reactions, r.Actors, r.Deliveries, r.Jobs, r.Reports, words, len(r.Users), took, r.Failed)
	if !r.DryRun && r.Failed == 0 {
		title = p.tick() + " " + title
	}
	facts := []fact{
		{key: "users", value: strconv.Itoa(len(r.Users)), titled: true},
		{key: "pruned_activities", value: strconv.Itoa(r.Activities), titled: true},
		{key: "pruned_objects", value: strconv.Itoa(r.Objects), titled: true},
		{key: "pruned_reactions", value: strconv.Itoa(r.Reactions), titled: true},
		{key: "pruned_actors", value: strconv.Itoa(r.Actors), titled: true},
		{key: "pruned_deliveries", value: strconv.Itoa(r.Deliveries), titled: true},
		{key: "pruned_jobs", value: strconv.Itoa(r.Jobs), titled: true},
		{key: "failed_deliveries", value: strconv.Itoa(r.Lapsed), titled: r.Lapsed == 0},
		{key: "pruned_audit", value: strconv.Itoa(r.Audits), titled: r.Audits == 0},
		{key: "pruned_messages", value: strconv.Itoa(r.Messages), titled: r.Messages == 0},
		{key: "pruned_acquaintances", value: strconv.Itoa(r.Strangers), titled: r.Strangers == 0},
		{key: "pruned_reports", value: strconv.Itoa(r.Reports), titled: true},
		{key: "forgotten_actors", value: strconv.Itoa(r.Forgotten), titled: r.Forgotten == 0},
		{key: "forgotten_hosts", value: strconv.Itoa(r.Hosts), titled: r.Hosts == 0},
		{key: "failed", value: strconv.Itoa(r.Failed), titled: true},
		{key: "days", value: strconv.Itoa(r.Days), titled: true},
		{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true},
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}
	for _, u := range r.Users {
		if u.Error != "" {
			facts = append(facts, fact{key: "failure", value: u.User.String() + ": " + u.Error})
		}
	}
	return p.writeFacts(title, facts, r)
}
