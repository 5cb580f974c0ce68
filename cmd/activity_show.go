package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/explain"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newActivityShow(a *app) *cobra.Command {
	var user string
	c := &cobra.Command{
		Use:   "show URI [flags]",
		Short: "Show what became of an activity or a post",
		Long: "show tells, for every user that an activity or post may concern, whether it arrived, where it is\n" +
			"now, and why it is missing. For an activity of a user here it also shows the deliveries. It\n" +
			"looks at the user whose id is in the URI, at users who know an actor on the server of the URI,\n" +
			"and at users with a journal entry for it. With --user it looks at that user only. Exit code 66:\n" +
			"nothing is known of it. Exit code 3: the database of some user could not be read.\n\n" +
			"In a pipe it writes a line per user with name, outcome and explanation, then a line per\n" +
			"unfinished delivery, separated by tabs. Outcomes are sent, feed, stored, object, deleted,\n" +
			"poison, waiting, not_kept, ignored, blocked, never and unreadable. The explanation of ignored\n" +
			"says why the engine answered 202 and kept nothing.",
		Example: "  lightweb activity show https://remote.example/users/bob/statuses/1\n  lightweb activity show https://remote.example/notes/1 --user alice --json",
		Args:    takesArgs("URI"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			var only vocab.Username
			if user != "" {
				if only, err = vocab.ParseUsername(user); err != nil {
					return err
				}
			}
			return a.instance(ctx, instance.Open, func(in *instance.Instance) error {
				t, err := explain.Activity(ctx, in, args[0], only)
				if err != nil {
					return err
				}
				if err := cmp.Or(a.out.showActivity(t), t.Unread); err != nil || t.Known {
					return err
				}
				return unknownActivity(t)
			})
		}),
	}
	c.Flags().StringVar(&user, "user", "", "look at `USER` only")
	return c
}

// unknownActivity returns the failure of a command that found nothing about an id.
func unknownActivity(t explain.Trace) error {
	err := fault.New(fault.NotFound, fmt.Sprintf("nothing is known of %s", t.URI))
	switch {
	case t.Blocked:
		return err.WithHint("the policy in registry/server.json refuses " + t.URI.Host())
	case len(t.Users) == 0 && !t.Local:
		return err.WithHint("nobody here has to do with anybody on " + t.URI.Host() + ": 'lightweb actor fetch' tells whether it answers")
	}
	return err
}

func (p *printer) showActivity(t explain.Trace) error {
	var rows [][]string
	if t.Ignored != nil && len(t.Users) == 0 {
		rows = append(rows, []string{"-", explain.TraceIgnored, t.Ignored.Says})
	}
	for _, u := range t.Users {
		rows = append(rows, []string{u.User.String(), u.Outcome, u.Says})
		for _, j := range u.Jobs {
			for _, d := range j.Deliveries {
				if d.Status != "delivered" {
					rows = append(rows, []string{u.User.String(), d.Status, describeUndelivered(j, d)})
				}
			}
		}
	}
	return p.writeTable([]string{"USER", "OUTCOME", "WHAT HAPPENED"}, rows, t)
}

// describeUndelivered returns a text about a delivery that is not done: how many attempts there
// were, and why they failed.
func describeUndelivered(j explain.TracedJob, d explain.TracedDelivery) string {
	s := fmt.Sprintf("%s to %s, %d attempts", j.Type, d.Inbox, d.Attempts)
	if d.LastStatus != 0 {
		s += ", answered " + strconv.Itoa(d.LastStatus)
	}
	if d.NextAt != nil {
		s += ", next " + stamp(*d.NextAt)
	}
	if d.Error != "" {
		s += ": " + d.Error
	}
	return s
}
