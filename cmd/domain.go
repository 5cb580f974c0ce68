package cmd

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newDomain(a *app) *cobra.Command {
	return newGroup("domain", "Which domains may talk to this server", "domain shows and changes which domains may talk to this server: registry/server.json, which may be edited by hand as\n"+
		"well. A running server follows within a second. A domain stands for itself and everything below it.",
		newDomainBlock(a), newDomainUnblock(a), newDomainAllow(a), newDomainDisallow(a), newDomainList(a), newDomainImport(a), newDomainExport(a))
}

// addDomainFlags adds the flags of commands that change a list of domains.
func addDomainFlags(c *cobra.Command, change *admin.DomainChange) {
	c.Flags().BoolVarP(&change.DryRun, "dry-run", "n", false, "change nothing, and report what would be changed")
	if !change.Remove {
		c.Flags().StringVar(&change.Comment, "comment", "", "keep `TEXT` with the domains")
	}
}

// changeDomains changes a list of domains and shows the result. The parameter done is the word
// for the change in the result, such as blocked.
func (a *app) changeDomains(ctx context.Context, change admin.DomainChange, done string) error {
	return a.admin(ctx, func(t *admin.Tasks) error {
		r, err := t.Domains.Change(ctx, change)
		if len(r.Changed) == 0 || err != nil && fault.KindOf(err) != fault.Partial {
			return err
		}
		if r.DryRun {
			done = "to be " + done
		}
		if shown := a.out.writeDone(done+" "+strings.Join(r.Changed, " "), r); shown != nil {
			return shown
		}
		a.notices.warnTies(r.Ties)
		return err
	})
}
