package cmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newReportShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a report",
		Long: "show tells everything about a report: the reporter, the reported actor and objects, and the\n" +
			"words of the reporter.",
		Example: "  lightweb report show 12",
		Args:    takesArgs("ID"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			ids, err := reportIDs(args)
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Reports.Find(ctx, ids[0])
				if err != nil {
					return err
				}
				return a.out.writeFacts(a.out.style().Bold(true).Render("report "+args[0]), reportFacts(r), r)
			})
		}),
	}
}

// reportFacts returns the facts about a report, with the same keys as in JSON.
func reportFacts(r admin.Report) []fact {
	facts := []fact{
		{key: "id", value: strconv.FormatInt(r.ID, 10), titled: true},
		{key: "state", value: r.State},
		{key: "actor", value: string(r.Actor)},
		{key: "activity", value: string(r.Activity)},
		{key: "users", value: strings.Join(r.Users, ", ")},
	}
	for _, o := range r.Objects {
		facts = append(facts, fact{key: "object", value: string(o)})
	}
	facts = append(facts, fact{key: "content", value: r.Content}, fact{key: "received_at", value: stamp(r.ReceivedAt)})
	if r.ResolvedAt != nil {
		facts = append(facts, fact{key: "resolved_at", value: stamp(*r.ResolvedAt)}, fact{key: "note", value: r.Note})
	}
	return facts
}
