package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newDBStatus(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the schema of every database",
		Long: "status looks at the database of every user and says whether this lightweb can use it. In a pipe: a line per user\n" +
			"with name, database, schema version and what is wrong, separated by tabs. The server, the instance database and the\n" +
			"template are in the JSON document.",
		Example: "  lightweb db status\n  lightweb db status --json | jq -r '.users[] | select(.usable | not) | .hint'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				st, err := t.Databases.Status(ctx)
				if err != nil {
					return err
				}
				rows := make([][]string, len(st.Users))
				for i, u := range st.Users {
					state := "usable"
					if !u.Usable {
						state = u.Error
					}
					rows[i] = []string{u.User.String(), u.Database, strconv.Itoa(u.Version), state}
				}
				return a.out.writeTable([]string{"USER", "DATABASE", "SCHEMA", "STATE"}, rows, st)
			})
		}),
	}
}
