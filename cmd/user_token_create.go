package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// createdToken is the result of user token create. Only this result shows the secret.
type createdToken struct {
	admin.Token
	Secret string `json:"token"`
}

func newUserTokenCreate(a *app) *cobra.Command {
	var name string
	var scope []string
	var expires time.Duration
	c := &cobra.Command{
		Use:   "create NAME [flags]",
		Short: "Make a token",
		Long: "create makes a token with which a program acts for the user NAME, and shows it this once. Its\n" +
			"scopes are its rights: read and write for clients, admin for administration, llm for a language\n" +
			"model that acts within narrow limits.",
		Example: "  lightweb user token create alice --name phone\n  lightweb user token create alice --scope llm --expires 30d",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			if a.quiet {
				return fault.New(fault.Usage, "--quiet would hide the token, which is shown once only")
			}
			if expires == 0 && a.command.Flags().Changed("expires") {
				return fault.New(fault.Usage, "a token that expires at once is of no use").WithHint("leave --expires out for one that is good until it is revoked")
			}
			if err := admin.CheckScopes(scope); err != nil {
				return err
			}
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				made, secret, err := t.Tokens.Create(ctx, user, name, scope, expires)
				if err != nil {
					return err
				}
				facts := append(tokenFacts(made), fact{key: "token", value: secret, note: " — shown once; use it as 'Authorization: Bearer …'"})
				title := fmt.Sprintf("%s made a token of %s", a.out.tick(), a.out.style().Bold(true).Render(user.String()))
				return a.out.writeFacts(title, facts, createdToken{made, secret})
			})
		}),
	}
	c.Flags().StringVar(&name, "name", "", "purpose of the token, such as the `NAME` of a program")
	c.Flags().StringSliceVar(&scope, "scope", []string{"read", "write"}, "rights of the token: a list of `SCOPES`")
	c.Flags().Var((*span)(&expires), "expires", "lifetime of the token, such as 30d; until it is revoked if not given")
	c.Flags().Lookup("expires").DefValue = ""
	return c
}

func tokenFacts(t admin.Token) []fact {
	facts := []fact{
		{key: "id", value: t.ID.String()},
		{key: "user", value: t.User.String(), titled: true},
		{key: "scopes", value: strings.Join(t.Scopes, ",")},
		{key: "created_at", value: stamp(t.CreatedAt)},
	}
	if t.Name != "" {
		facts = append(facts, fact{key: "name", value: t.Name})
	}
	if t.ExpiresAt != nil {
		facts = append(facts, fact{key: "expires_at", value: stamp(*t.ExpiresAt)})
	}
	return facts
}
