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
		Long: "add looks up the relay's actor on its server, stores the relay as pending, and sends it a Follow\n" +
			"by the instance actor. When the relay has accepted, the engine sends posts to it and takes posts\n" +
			"from it. That may take a moment, or until the relay's operator has looked.\n\n" +
			"There are two styles of relays. An address that ends in /inbox is a relay of Mastodon's style:\n" +
			"the Follow names the public collection, and the engine sends posts as they are. The address of\n" +
			"an actor is a relay of LitePub's style: the Follow names that actor, and the engine announces\n" +
			"posts to it. --style chooses the style, for relays that take both.\n\n" +
			"If the Follow cannot be sent, the relay stays pending: run add again to send the Follow again,\n" +
			"also to a relay that has rejected it. Exit code 73: the relay has accepted before. 66: there is\n" +
			"no actor. 77: its domain is blocked. 65: the relay is this server.",
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
