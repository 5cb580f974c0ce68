package admin

import (
	"context"
	"fmt"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/foreign"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Imports bring users' data from other servers and programs.
type Imports struct{ in *instance.Instance }

// ImportOptions says what to import.
type ImportOptions struct {
	As         vocab.Username // the user who gets the data; if zero, the user that an export of lightweb names
	List       foreign.Kind   // the kind of a list that does not state its kind; if empty, such a list is refused
	VerifyOnly bool           // read and count everything, and change nothing
	Progress   func(done, all int)
}

// ImportReport counts the data that an import brought, or would bring if VerifyOnly is set.
type ImportReport struct {
	File    string         `json:"file"`
	Kind    foreign.Kind   `json:"kind"`
	User    vocab.Username `json:"user"`
	From    vocab.ID       `json:"from,omitempty"` // the account that an archive belongs to
	Posts   int            `json:"posts"`
	Added   int            `json:"posts_added"`   // posts that were not stored before
	Skipped int            `json:"posts_skipped"` // items of the outbox that are not posts

	Attachments int `json:"attachments_left"` // files of posts, which are not imported
	Likes       int `json:"likes_left"`       // likes, which are not imported
	Bookmarks   int `json:"bookmarks_left"`

	Blocks     int            `json:"blocks"`
	Mutes      int            `json:"mutes"`
	Domains    int            `json:"muted_domains"`
	Follows    int            `json:"follows"`
	Waiting    int            `json:"waiting"` // new blocks, mutes and follows that wait for the engine
	Restored   *RestoreReport `json:"restored,omitempty"`
	VerifyOnly bool           `json:"verify_only"`
	Millis     int64          `json:"elapsed_ms"`
}

// Import gives the content of a file to a user. The file is an export of lightweb, an archive of
// another program, or a list of accounts or domains. If it is an export of the same user and the
// same public_url, the user is restored from it. Import reads the whole file before it changes
// anything. If the same file is imported again, nothing more changes. The fault is NotFound for a
// file that cannot be opened, Invalid for one that is damaged or of another kind, and TooLarge for
// one that exceeds a limit. It is Usage when the user, or the purpose of a list, is not named,
// NoUser when the user is not active, and Conflict when too many blocks, mutes or follows would
// wait. The faults of a restore are those of Backups.Restore.
func (im Imports) Import(ctx context.Context, path string, o ImportOptions) (ImportReport, error) {
	began := time.Now()
	kind, err := foreign.Detect(ctx, path)
	if err != nil {
		return ImportReport{}, err
	}
	r := &importRun{in: im.in, ask: o, report: ImportReport{File: path, Kind: kind, User: o.As, VerifyOnly: o.VerifyOnly}}
	if kind == foreign.Export {
		a, err := archive.OpenBounded(ctx, path)
		if err != nil {
			return ImportReport{}, err
		}
		defer a.Close()
		if err := r.openExport(a); err != nil {
			return ImportReport{}, err
		}
		if a.Manifest.PublicURL == im.in.Config.PublicURL && r.report.User == a.Manifest.Users[0].Name {
			err = r.restoreUser(ctx)
			r.report.Millis = time.Since(began).Milliseconds()
			return r.report, err
		}
	}
	if err := r.runImport(ctx); err != nil {
		return ImportReport{}, err
	}
	r.report.Millis = time.Since(began).Milliseconds()
	return r.report, nil
}

// importRun is one run of Import.
type importRun struct {
	in      *instance.Instance
	ask     ImportOptions
	report  ImportReport
	from    source
	luggage luggage
}

// restoreUser restores the user from the export.
func (r *importRun) restoreUser(ctx context.Context) error {
	restored, err := Backups{r.in}.Restore(ctx, r.report.File, RestoreOptions{User: r.report.User, DryRun: r.ask.VerifyOnly, Progress: r.ask.Progress})
	if fault.KindOf(err) == fault.Conflict && !r.ask.VerifyOnly {
		if row, found := r.in.DB.Instance.Users.Find(ctx, r.report.User); found == nil && row.State == dbinstance.UserActive {
			return fault.Wrap(fault.Conflict, fmt.Sprintf("%s is here already: %s", r.report.User, fault.Public(err)), err).
				WithHint("an import that was killed may have ended; 'lightweb restore --replace' goes back to the export")
		}
	}
	r.report.Restored = &restored
	return err
}

// runImport reads the whole file, and then stores its content.
func (r *importRun) runImport(ctx context.Context) error {
	if r.report.User.IsZero() {
		return fault.New(fault.Usage, "the file does not say for which user it is").WithHint("name the user with --as")
	}
	row, err := r.in.DB.Instance.Users.Find(ctx, r.report.User)
	if err != nil {
		return err
	}
	if row.State != dbinstance.UserActive {
		return fault.New(fault.NoUser, fmt.Sprintf("the user %q is %s", r.report.User, row.State)).WithHint("lightweb user list")
	}
	if err := r.gather(ctx); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil || r.ask.VerifyOnly {
		return err
	}
	return r.store(ctx)
}

// check refuses an import that store would refuse because of a limit. It runs before anything is
// stored.
func (r *importRun) check(ctx context.Context) error {
	merge, err := r.mergeMutes(ctx)
	if err != nil {
		return err
	}
	if err := r.in.Registry.CheckUpdate(r.report.User, merge); err != nil {
		return err
	}
	return r.in.DB.Instance.Wishes.Check(ctx, r.report.User, r.luggage.wishes, r.in.Now())
}

// gather reads the whole file, and keeps everything in memory except the posts.
func (r *importRun) gather(ctx context.Context) error {
	switch r.report.Kind {
	case foreign.Export:
		return r.gatherArchive(ctx)
	case foreign.Archive:
		r.from = func(ctx context.Context, visit visitor) error { return foreign.ReadArchive(ctx, r.report.File, visit) }
		return r.gatherArchive(ctx)
	}
	l, err := foreign.ReadList(r.report.File)
	if err != nil {
		return err
	}
	return r.gatherList(l)
}

// gatherList adds the entries of a list to what the import stores.
func (r *importRun) gatherList(l foreign.List) error {
	if l.Kind == foreign.Accounts {
		if r.ask.List == "" {
			return fault.New(fault.Usage, "the list does not say what is to be done with its accounts").WithHint("--list blocks, --list mutes or --list following")
		}
		l.Kind = r.ask.List
	}
	if r.ask.List != "" && r.ask.List != l.Kind {
		return fault.New(fault.Usage, fmt.Sprintf("the list is one of %s, as its first line says", l.Kind)).WithHint("leave --list away")
	}
	r.report.Kind = l.Kind
	if l.Kind == foreign.Domains {
		r.luggage.domains = l.Entries
		r.report.Domains = len(l.Entries)
		return nil
	}
	kind := map[foreign.Kind]string{foreign.Following: dbinstance.WishFollow, foreign.Mutes: dbinstance.WishMute, foreign.Blocks: dbinstance.WishBlock}[l.Kind]
	for _, account := range l.Entries {
		r.wish(kind, account, hostOfHandle(account))
	}
	return nil
}
