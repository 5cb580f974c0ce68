package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserAudit(a *app) *cobra.Command {
	var c admin.AuditChoice
	var since string
	lines := jsonLines{app: a}
	cmd := &cobra.Command{
		Use:   "audit NAME [flags]",
		Short: "List the actions that a user's programs dispatched",
		Long: "audit shows the actions that programs dispatched in the name of the user NAME, the newest first:\n" +
			"the time, the token, and the outcome, which is ok or the code of the refusal. Refusals of the\n" +
			"same action within an hour are one record with a count. Records are kept for 180 days. They have\n" +
			"ids and names, and only the size of texts.\n\n" +
			"In a pipe it writes a line per record with time, token, action, outcome, count, activity and\n" +
			"parameters, separated by tabs. --json=lines writes a JSON document per line.",
		Example: "  lightweb user audit alice --since 7d\n  lightweb user audit alice --action Follow --outcome ok -n 10\n  lightweb user audit alice --json=lines | jq .outcome",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if c.User, err = vocab.ParseUsername(args[0]); err != nil {
				return err
			}
			if err := checkAudit(&c, since); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				all, err := t.Audits.List(ctx, c)
				if err != nil {
					return err
				}
				return a.out.showAudit(all, lines.lines)
			})
		}),
	}
	f := cmd.Flags()
	f.IntVarP(&c.Limit, "limit", "n", 50, "list at most `N` records: 50 unless given")
	f.StringVar(&c.Action, "action", "", "only of one `ACTION`, such as CreateNote")
	f.StringVar(&c.Outcome, "outcome", "", "only with this `OUTCOME`: ok, or the code of a refusal")
	f.StringVar(&since, "since", "", "only those since a `TIME`: so long ago, such as 12h or 7d, or 2026-02-21T12:00:00Z")
	j := f.VarPF(&lines, "json", "", "write the result as one JSON document; as one per line with --json=lines")
	j.DefValue, j.NoOptDefVal = "false", "true"
	return cmd
}

// checkAudit refuses flags that are out of bounds.
func checkAudit(c *admin.AuditChoice, since string) (err error) {
	if c.Limit < 1 || c.Limit > maxListed {
		return fault.New(fault.Usage, fmt.Sprintf("--limit %d is not from 1 to %d", c.Limit, maxListed))
	}
	if c.Action != "" {
		if err := oneOf("action", c.Action, admin.ActionNames()); err != nil {
			return err
		}
	}
	if since != "" {
		c.Since, err = parseSince(since, time.Now())
	}
	return err
}

func (p *printer) showAudit(all []admin.Audit, lines bool) error {
	if lines {
		for _, r := range all {
			if err := p.writeLine(r); err != nil {
				return err
			}
		}
		return nil
	}
	rows := make([][]string, len(all))
	for n, r := range all {
		rows[n] = []string{stamp(r.At), cmp.Or(r.Name, r.Token), r.Action, r.Outcome, strconv.Itoa(r.Times), string(r.Activity), string(r.Params)}
	}
	doc := struct {
		Audit []admin.Audit `json:"audit"`
	}{notNil(all)}
	return p.writeTable([]string{"AT", "TOKEN", "ACTION", "OUTCOME", "TIMES", "ACTIVITY", "PARAMETERS"}, rows, doc)
}
