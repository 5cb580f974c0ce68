package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newActorFetch(a *app) *cobra.Command {
	var f admin.ActorFetch
	var as string
	var raw bool
	c := &cobra.Command{
		Use:   "fetch HANDLE|URL [flags]",
		Short: "Fetch a remote actor",
		Long: "fetch asks another server for an actor, as federation does, and shows the answer: WebFinger for\n" +
			"a handle, then a signed request for the actor, with every check. The instance actor signs the\n" +
			"request unless --signed-as names a user.\n\n" +
			"--raw writes the actor byte for byte as received. A stored copy has only the members that the\n" +
			"engine reads; --refresh asks the server again.",
		Example: "  lightweb actor fetch @bob@remote.example\n  lightweb actor fetch https://remote.example/users/bob --refresh --raw",
		Args:    takesArgs("HANDLE|URL"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			f.Resource = args[0]
			if err := errors.Join(a.exclusive("signed-as", "unsigned"), a.exclusive("refresh", "cached"), a.exclusive("raw", "json")); err != nil {
				return err
			}
			if as != "" {
				if f.As, err = vocab.ParseUsername(as); err != nil {
					return err
				}
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				got, err := t.Actors.Fetch(ctx, f)
				if err != nil {
					return err
				}
				return a.out.showActor(got, raw, time.Now())
			})
		}),
	}
	c.Flags().StringVar(&as, "signed-as", "", "sign as the local `USER`")
	c.Flags().BoolVar(&f.Unsigned, "unsigned", false, "do not sign")
	c.Flags().BoolVar(&f.Refresh, "refresh", false, "ask even if the stored copy is fresh")
	c.Flags().BoolVar(&f.Cached, "cached", false, "show a stored copy of any age, and ask only if there is none")
	c.Flags().BoolVar(&raw, "raw", false, "write the bytes as received")
	return c
}

func (p *printer) showActor(got admin.FetchedActor, raw bool, now time.Time) error {
	if raw {
		if p.quiet {
			return nil
		}
		text := string(got.Actor)
		if p.terminal {
			text = strings.TrimSuffix(text, "\n") + "\n"
		}
		return p.writeText(text)
	}
	facts := []fact{
		{key: "handle", value: got.Handle, titled: true},
		{key: "type", value: got.Type, titled: true},
		{key: "name", value: got.Name, titled: true},
		{key: "id", value: string(got.ID)},
		{key: "inbox", value: string(got.Inbox)},
		{key: "shared_inbox", value: string(got.SharedInbox)},
	}
	keys := make([]string, len(got.Keys))
	for i, k := range got.Keys {
		keys[i] = strings.TrimPrefix(string(k.ID), string(got.ID)) + " " + k.Type
		if k.Bits > 0 {
			keys[i] += fmt.Sprintf(" %d", k.Bits)
		}
	}
	facts = append(facts, fact{key: "keys", value: strings.Join(keys, " · ")})
	if h := got.HTTP; h != nil {
		facts = append(facts, fact{key: "answer", value: fmt.Sprintf("%d in %d ms, %d redirects, signature %s", h.Status, h.Millis, h.Redirects, h.Signature)})
	}
	age := "fetched " + describeAge(now, got.FetchedAt) + " ago, "
	if got.StaleAt.After(now) {
		age += "stale in " + describeAge(now, got.StaleAt)
	} else {
		age += "stale for " + describeAge(now, got.StaleAt)
	}
	facts = append(facts, fact{key: "copy", value: age})
	title := p.style().Bold(true).Render(cleanLine(got.Handle)) + "  " + cleanLine(got.Type)
	if got.Name != "" {
		title += "  “" + cleanLine(got.Name) + "”"
	}
	return p.writeFacts(title, facts, got)
}
