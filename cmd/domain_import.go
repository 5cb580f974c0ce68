package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newDomainImport(a *app) *cobra.Command {
	var dryRun bool
	c := &cobra.Command{
		Use:   "import FILE [flags]",
		Short: "Block the domains of a list",
		Long: "import blocks the domains of FILE, or of standard input when FILE is -: a table in Mastodon's format, whose first line\n" +
			"names its columns (#domain, #severity, #public_comment; others are not needed), or a domain on each line. It takes\n" +
			"1,000,000 lines and 64 MiB at most.\n\n" +
			"Of a table only severity suspend blocks: silence and noop are counted as skipped, for this server knows blocks alone.\n" +
			"Domains that are blocked already, with their comments, stay as they are, and nothing is unblocked. Lines that cannot\n" +
			"be taken are refused and named: what is no domain, a part of which is hidden (ev**.example), a public suffix, this\n" +
			"server's own domain. All others are taken at once, and exit code 3 tells of those that were not; 65 says that the list\n" +
			"cannot be read, or no line be taken, and nothing is changed.\n\n" +
			"--dry-run tells all of this beforehand. The domains that were blocked are .changed in the JSON, so that\n" +
			"they can be unblocked again.",
		Example: "  lightweb domain import blocklist.csv --dry-run\n  lightweb domain import blocklist.csv --json > import.json\n" +
			"  jq -r '.changed[]' import.json | xargs lightweb domain unblock",
		Args: takesArgs("FILE"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			var list io.Reader = endingReader{ctx, a.stdin}
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fault.Wrap(fault.NotFound, fmt.Sprintf("cannot read %.200q: %s", args[0], reason(err)), err)
				}
				defer f.Close()
				list = f
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				r, err := t.Domains.Import(ctx, list, dryRun)
				if err != nil {
					return err
				}
				return a.showImport(r)
			})
		}),
	}
	c.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "change nothing, and report what would be changed")
	return c
}

// maxNamed limits how many items of a long list are named to people. JSON has all items.
const maxNamed = 20

func (a *app) showImport(r admin.DomainImport) error {
	blocked := "blocked"
	if r.DryRun {
		blocked = "to block"
	}
	title := fmt.Sprintf("%d %s, %d were blocked before, %d skipped (silence, noop), %d refused", len(r.Changed), blocked, r.Unchanged, r.Skipped, len(r.Refused))
	if !r.DryRun && len(r.Refused) == 0 {
		title = a.out.tick() + " " + title
	}
	number := func(key string, n int, titled bool) fact {
		return fact{key: key, value: strconv.Itoa(n), titled: titled}
	}
	facts := []fact{
		number("rows", r.Rows, true),
		number("changed", len(r.Changed), true),
		number("unchanged", r.Unchanged, true),
		number("skipped", r.Skipped, true),
		number("refused", len(r.Refused), true),
		number("obfuscated", r.Obfuscated, r.Obfuscated == 0),
		number("users", r.Users, true),
		number("following", r.Following, true),
		{key: "dry_run", value: strconv.FormatBool(r.DryRun), titled: true},
	}
	for _, t := range r.Affected[:min(len(r.Affected), maxNamed)] {
		facts = append(facts, fact{key: "affected", value: fmt.Sprintf("%s: %d users know somebody there, %d may follow somebody", t.Domain, t.Users, t.Following)})
	}
	if err := a.out.writeFacts(title, facts, r); err != nil {
		return err
	}
	a.notices.warnTies(r.Ties)
	for _, row := range r.Refused[:min(len(r.Refused), maxNamed)] {
		a.notices.warn("line %d: %s: %s", row.Line, row.Text, row.Problem)
	}
	return someFailed(len(r.Refused), r.Rows, "lines were not taken", "--json names all of them")
}
