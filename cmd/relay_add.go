package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newRelayAdd(a *app) *cobra.Command {
	var style string
	c := &cobra.Command{
		Use:   "add URL|ACTOR [flags]",
		Short: "Subscribe to a relay",
		Long: "add finds the relay's actor on its own server, keeps the relay as pending, and sends it a Follow by the instance actor.\n" +
			"Posts go to it, and are taken from it, once it has accepted: that may take a moment, or until its operator has looked.\n\n" +
			"Relays come in two styles. An address that ends in /inbox is taken for one of Mastodon's: the Follow is of everybody,\n" +
			"and posts are sent as they are. The address of an actor is taken for LitePub: the Follow is of that actor, and posts\n" +
			"are announced to it. --style says it outright, for relays that take both.\n\n" +
			"When the Follow cannot be sent the relay stays pending, and add sends it again; so it does for one that has rejected\n" +
			"it. Exit code 73 says that the relay has accepted, 66 that no actor is there, 77 that its domain is blocked, and 65\n" +
			"that it is this server.",
		Example: "  lightweb relay add https://relay.example/inbox\n  lightweb relay add https://relay.example/actor --style mastodon",
		Args:    takesArgs("URL|ACTOR"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Relays.Add(ctx, args[0], style)
				if err != nil {
					return err
				}
				return a.out.writeFacts(a.out.tick()+" "+r.State+" "+cleanLine(string(r.Actor)), []fact{
					{key: "state", value: r.State, titled: true},
					{key: "actor", value: string(r.Actor), titled: true},
					{key: "inbox", value: string(r.Inbox)},
					{key: "style", value: r.Style},
					{key: "follow", value: string(r.Follow)},
				}, r)
			})
		}),
	}
	c.Flags().StringVar(&style, "style", "", "the `STYLE` of the relay: mastodon or litepub (default: by the address)")
	return c
}
