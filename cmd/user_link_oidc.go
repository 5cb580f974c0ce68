package cmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserLinkOIDC(a *app) *cobra.Command {
	var issuer string
	var remove, list bool
	c := &cobra.Command{
		Use:   "link-oidc NAME [SUBJECT] [flags]",
		Short: "Let a user sign in by the OpenID provider",
		Long: "link-oidc lets the user NAME sign in at GET /api/session/oidc with the provider's account\n" +
			"SUBJECT. SUBJECT is the claim 'sub' of the provider's tokens, which the provider never gives to\n" +
			"another account. Only linked accounts can sign in. --remove unlinks an account and ends its\n" +
			"sessions. --list shows the accounts of the user, 10 at most.",
		Example: "  lightweb user link-oidc alice 248289761001\n  lightweb user link-oidc alice --list\n  lightweb user link-oidc alice 248289761001 --remove",
		Args:    takesArgs("NAME", "[SUBJECT]"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if list != (len(args) == 1) || list && (remove || issuer != "") {
				return fault.New(fault.Usage, "give a SUBJECT, or --list alone").WithHint("lightweb help user link-oidc")
			}
			if list {
				return a.listIdentities(ctx, user)
			}
			return a.linkIdentity(ctx, user, issuer, args[1], remove)
		}),
	}
	c.Flags().StringVar(&issuer, "issuer", "", "the address of the `PROVIDER`: oidc.issuer unless given")
	c.Flags().BoolVar(&remove, "remove", false, "take the identity away")
	c.Flags().BoolVar(&list, "list", false, "show the user's identities")
	return c
}

func (a *app) linkIdentity(ctx context.Context, user vocab.Username, issuer, subject string, remove bool) error {
	change, done := admin.Identities.Link, "linked %s to %s"
	if remove {
		change, done = admin.Identities.Unlink, "unlinked %s from %s"
	}
	return a.admin(ctx, func(t *admin.Tasks) error {
		if err := change(t.Identities, ctx, user, issuer, subject); err != nil {
			return err
		}
		return a.out.writeDone(fmt.Sprintf(done, user, subject), map[string]any{"user": user, "subject": subject, "linked": !remove})
	})
}

func (a *app) listIdentities(ctx context.Context, user vocab.Username) error {
	return a.admin(ctx, func(t *admin.Tasks) error {
		list, err := t.Identities.List(ctx, user)
		if err != nil {
			return err
		}
		rows := make([][]string, len(list))
		for n, i := range list {
			rows[n] = []string{i.Issuer, i.Subject, stamp(i.CreatedAt)}
		}
		doc := struct {
			Identities []admin.Identity `json:"identities"`
		}{list}
		return a.out.writeTable([]string{"ISSUER", "SUBJECT", "LINKED"}, rows, doc)
	})
}
