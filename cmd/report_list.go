package cmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newReportList(a *app) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List the open reports",
		Long: "list shows the reports that are not resolved, the newest first. In a pipe: a line per report with id, state, time,\n" +
			"reporting host, users concerned, number of objects and what the reporter says, separated by tabs.",
		Example: "  lightweb report list\n  lightweb report list --all --json | jq '.reports[] | {id, users}'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				reports, err := t.Reports.List(ctx, all)
				if err != nil {
					return err
				}
				rows := make([][]string, len(reports))
				for i, r := range reports {
					rows[i] = []string{strconv.FormatInt(r.ID, 10), r.State, stamp(r.ReceivedAt), r.Host, strings.Join(r.Users, ","), strconv.Itoa(len(r.Objects)), abbreviateText(r.Content)}
				}
				doc := struct {
					Reports []admin.Report `json:"reports"`
				}{notNil(reports)}
				return a.out.writeTable([]string{"ID", "STATE", "RECEIVED", "HOST", "USERS", "OBJECTS", "CONTENT"}, rows, doc)
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "list the resolved ones too")
	return c
}

// maxBeginning limits how many characters of a text a table shows, including the ellipsis.
const maxBeginning = 60

func abbreviateText(text string) string {
	if r := []rune(text); len(r) > maxBeginning {
		return string(r[:maxBeginning-1]) + "…"
	}
	return text
}
