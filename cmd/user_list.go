package cmd

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newUserList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the users",
		Long: "list shows every user, deleted ones too. In a pipe: a line per user with name, handle, state, schema version and\n" +
			"time of creation, separated by tabs.",
		Example: "  lightweb user list\n  lightweb user list --json | jq -r '.users[].handle'",
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				users, err := t.Users.List(ctx)
				if err != nil {
					return err
				}
				rows := make([][]string, len(users))
				for i, u := range users {
					rows[i] = []string{u.Name.String(), u.Handle, u.State, strconv.Itoa(u.SchemaVersion), stamp(u.CreatedAt)}
				}
				doc := struct {
					Users []admin.User `json:"users"`
				}{notNil(users)}
				return a.out.writeTable([]string{"USER", "HANDLE", "STATE", "SCHEMA", "CREATED"}, rows, doc)
			})
		}),
	}
}

// stamp returns the form of a time that both people and scripts read: RFC 3339 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// notNil returns an empty list for nil, so that JSON has [] and never null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
