package cmd

import (
	"context"
	"fmt"
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

// addDomainFlags adds those that every change has.
func addDomainFlags(c *cobra.Command, change *admin.DomainChange) {
	c.Flags().BoolVarP(&change.DryRun, "dry-run", "n", false, "change nothing, and report what would be changed")
	if !change.Remove {
		c.Flags().StringVar(&change.Comment, "comment", "", "keep `TEXT` with the domains")
	}
}

// changeDomains changes a list of domains and says what became of it: what is done is done in those
// words.
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
		a.warnTies(r.Ties)
		return err
	})
}

// warnTies says who here has to do with what is blocked now.
func (a *app) warnTies(t admin.Ties) {
	if t.Users > 0 {
		a.warn("users here who know somebody there: %d; who may follow somebody there: %d", t.Users, t.Following)
	}
}

// warn tells people of what a program reads in the JSON.
func (a *app) warn(format string, args ...any) {
	if !a.quiet && !a.json {
		fmt.Fprintf(a.stderr, "warning: %s\n", cleanLine(fmt.Sprintf(format, args...)))
	}
}
