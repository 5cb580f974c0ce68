package cmd

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserTokenList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list NAME",
		Short: "List the tokens of a user",
		Long: "list shows the tokens of the user NAME, without their secrets. In a pipe: a line per token with id, name, scopes and\n" +
			"the times of creation, last use and end, separated by tabs.",
		Example: "  lightweb user token list alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				tokens, err := t.Tokens.List(ctx, user)
				if err != nil {
					return err
				}
				rows := make([][]string, len(tokens))
				for i, t := range tokens {
					rows[i] = []string{t.ID.String(), t.Name, strings.Join(t.Scopes, ","), stamp(t.CreatedAt), stampOr(t.LastUsedAt, "never"), stampOr(t.ExpiresAt, "never")}
				}
				doc := struct {
					Tokens []admin.Token `json:"tokens"`
				}{notNil(tokens)}
				return a.out.writeTable([]string{"ID", "NAME", "SCOPES", "CREATED", "LAST USED", "EXPIRES"}, rows, doc)
			})
		}),
	}
}

// stampOr returns t in the form of stamp, or the parameter none if t is nil.
func stampOr(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return stamp(*t)
}
