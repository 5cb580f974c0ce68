package cmd

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/foreign"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserImport(a *app) *cobra.Command {
	var as, list string
	var o admin.ImportOptions
	var yes bool
	c := &cobra.Command{
		Use:   "import FILE [flags]",
		Short: "Import what a user has elsewhere",
		Long: "import brings the content of FILE to a user. It finds out the kind of FILE by itself:\n\n" +
			"An export of lightweb ('user export') with the same public_url brings the user back, as 'restore\n" +
			"--user' does: no engine may be serving. From another public_url, or for another user, import\n" +
			"copies instead, to the user here that --as names: the posts to read (feed=archive), the follows,\n" +
			"blocks and mutes, and the parts of the profile that are empty here. 'user move' takes the\n" +
			"followers along.\n\n" +
			"An archive of Mastodon (zip or tar.gz) brings posts and profile in the same way. The CSV files\n" +
			"of Mastodon bring follows, blocks and mutes of accounts and domains. --list gives the kind of a\n" +
			"list of accounts that does not name its kind.\n\n" +
			"import reads the whole file before it changes anything. Exit code 65: the file is damaged or of\n" +
			"no such kind. import never sends the posts to anybody. It applies blocks and mutes first. A\n" +
			"running engine then sends the follows, one every two seconds for each user and each server. A\n" +
			"file brings at most 10,000 accounts of each kind. To finish an import that was killed, run it\n" +
			"again. --verify-only reads and counts everything, and changes nothing.",
		Example: "  lightweb user import alice.tar.gz --verify-only\n  lightweb user import mastodon.zip --as alice --yes\n" +
			"  lightweb user import following_accounts.csv --as alice --yes\n  lightweb user import blocked_accounts.csv --list blocks --as alice --yes",
		Args: takesArgs("FILE"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if as != "" {
				if o.As, err = vocab.ParseUsername(as); err != nil {
					return err
				}
			}
			if list != "" {
				if o.List, err = foreign.ParseKind(list); err != nil {
					return err
				}
			}
			if !o.VerifyOnly {
				if err := a.prompt.confirm(ctx, "import "+args[0], yes); err != nil {
					return err
				}
			}
			return a.runImport(ctx, args[0], o)
		}),
	}
	c.Flags().StringVar(&as, "as", "", "import into the user `NAME`")
	c.Flags().StringVar(&list, "list", "", "`KIND` of the list: following, mutes or blocks")
	c.Flags().BoolVar(&o.VerifyOnly, "verify-only", false, "change nothing, and report what would be imported")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// runImport imports the file at path and shows the report.
func (a *app) runImport(ctx context.Context, path string, o admin.ImportOptions) error {
	return a.admin(ctx, func(t *admin.Tasks) error {
		var end func()
		o.Progress, end = a.notices.progress("importing")
		r, err := t.Imports.Import(ctx, path, o)
		end()
		if err != nil && fault.KindOf(err) != fault.Partial {
			return err
		}
		if shown := a.out.showUserImport(r); shown != nil {
			return shown
		}
		return err
	})
}

func (p *printer) showUserImport(r admin.ImportReport) error {
	if r.Restored != nil && !p.json {
		return p.showRestore(*r.Restored)
	}
	title := fmt.Sprintf("%s imported %s in %s", p.tick(), cleanLine(r.File), time.Duration(r.Millis)*time.Millisecond)
	if r.VerifyOnly {
		title = fmt.Sprintf("%s %s can be imported", p.tick(), cleanLine(r.File))
	}
	facts := []fact{
		{key: "file", value: r.File, titled: true},
		{key: "kind", value: string(r.Kind)},
		{key: "user", value: r.User.String()},
	}
	if r.From != "" {
		facts = append(facts, fact{key: "from", value: string(r.From)})
	}
	const left = " — not taken over: keep the archive"
	for _, n := range []struct {
		key   string
		value int
		note  string
	}{
		{"posts", r.Posts, ""}, {"posts_added", r.Added, ""}, {"posts_skipped", r.Skipped, " — what is no post of the account's own"}, {"attachments_left", r.Attachments, left}, {"likes_left", r.Likes, left}, {"bookmarks_left", r.Bookmarks, left}, {"blocks", r.Blocks, ""}, {"mutes", r.Mutes, ""},
		{"muted_domains", r.Domains, ""}, {"follows", r.Follows, ""}, {"waiting", r.Waiting, " — a running engine sees to them one after another"},
	} {
		facts = append(facts, fact{key: n.key, value: strconv.Itoa(n.value), note: n.note})
	}
	if r.From != "" && !r.VerifyOnly {
		facts = append(facts, fact{key: "next", value: fmt.Sprintf("lightweb user move %s --from %s", r.User, r.From), note: " — then move there to this account: the followers come along"})
	}
	facts = append(facts, fact{key: "elapsed_ms", value: strconv.FormatInt(r.Millis, 10), titled: true})
	return p.writeFacts(title, facts, r)
}
