package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/lightweb/lightweb/db/dump"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// RestoreOptions says what to restore from a backup.
type RestoreOptions struct {
	// User is the only user to restore. The backup may be of this user alone or of the whole
	// instance. If User is zero, the whole instance is restored.
	User     vocab.Username
	Replace  bool                // rename the user's existing database
	KeepKeys bool                // leave existing keys that differ from those in the backup
	DryRun   bool                // build the databases and remove them again
	Progress func(done, all int) // called after each user; may be nil
}

// RestoreReport is the result of Restore, or its preview if DryRun is set.
type RestoreReport struct {
	File      string    `json:"file"`
	CreatedAt time.Time `json:"created_at"` // of the backup
	Version   string    `json:"lightweb"`   // version that made the backup
	PublicURL string    `json:"public_url"`
	Whole     bool      `json:"whole"` // whether the instance was restored
	Keys      bool      `json:"keys"`  // whether the backup has private keys
	Users     int       `json:"users"`
	Rows      int64     `json:"rows"`
	Fenced    int64     `json:"fenced"`           // deliveries to other servers, now skipped
	Kept      []string  `json:"kept"`             // existing files that differ from the backup and were not replaced
	Without   []string  `json:"without_database"` // users whose database the backup lacks
	Blocks    int       `json:"blocks"`           // blocks newer than the backup, copied from the replaced database
	PutAside  string    `json:"put_aside"`        // new name of the replaced database
	Refusal   string    `json:"refusal"`          // with DryRun: the reason why a restore would fail
	DryRun    bool      `json:"dry_run"`
	Millis    int64     `json:"elapsed_ms"`
}

// Restore restores the content of a backup. It puts all databases in place together, or none of
// them. Files that it wrote before a failure stay. The fault is Invalid for a damaged archive,
// Config for a backup of another origin or of a newer lightweb, Conflict when existing data is
// in the way, Busy while an engine serves or another process restores, and Partial when the
// backup lacks a user's database, or when a dry run could not remove what it built.
func (bs Backups) Restore(ctx context.Context, path string, r RestoreOptions) (RestoreReport, error) {
	began := time.Now()
	a, err := archive.Open(ctx, path)
	if err != nil {
		return RestoreReport{}, err
	}
	defer a.Close()
	p := &restoreRun{in: bs.in, ask: r, archive: a, report: RestoreReport{File: path, CreatedAt: a.Manifest.CreatedAt, Version: a.Manifest.Version,
		PublicURL: a.Manifest.PublicURL, Whole: r.User.IsZero(), Keys: a.Manifest.Keys, DryRun: r.DryRun, Kept: []string{}, Without: []string{}}}
	if err := p.checkManifest(); err != nil {
		return RestoreReport{}, err
	}
	if !r.User.IsZero() { // a backup of the whole instance brings its own origin
		if err := bs.in.KeepOrigin(ctx); err != nil {
			return RestoreReport{}, err
		}
	}
	err = p.runRestore(ctx)
	if err == nil && p.report.Whole && !r.DryRun {
		err = bs.in.NoteServer()
	}
	if err != nil && fault.KindOf(err) != fault.Partial {
		return RestoreReport{}, err
	}
	p.report.Users, p.report.Millis = len(p.users), time.Since(began).Milliseconds()
	if n := len(p.report.Without); n > 0 {
		return p.report, fault.New(fault.Partial, fmt.Sprintf("the backup lacks the database of %d of %d users", n, len(p.users))).
			WithHint("lightweb restore an older backup with --user " + p.report.Without[0])
	}
	return p.report, err
}

// restoreRun is one run of Restore.
type restoreRun struct {
	in      *instance.Instance
	ask     RestoreOptions
	archive *archive.Reader
	users   []archive.User // the users to restore
	write   []newFile
	report  RestoreReport
}

// newFile is a file to create.
type newFile struct {
	path string
	data []byte
}

// checkManifest selects the users to restore. It refuses a backup of another origin, and a backup
// without the requested user or in which that user is deleted. If no user is requested, it refuses
// a backup of one user.
func (p *restoreRun) checkManifest() error {
	m := p.archive.Manifest
	if m.PublicURL != p.in.Config.PublicURL {
		return fault.New(fault.Config, fmt.Sprintf("the backup is of %s and this instance is %s: every id in it would be another server's", m.PublicURL, p.in.Config.PublicURL)).
			WithHint("set public_url to " + m.PublicURL)
	}
	for _, u := range m.Users {
		if p.ask.User.IsZero() || u.Name == p.ask.User {
			p.users = append(p.users, u)
		}
	}
	switch {
	case !p.ask.User.IsZero() && len(p.users) == 0:
		return fault.New(fault.NoUser, fmt.Sprintf("the backup holds nothing of a user %q", p.ask.User))
	case !p.ask.User.IsZero() && isRemoved(p.users[0]):
		return fault.New(fault.Gone, fmt.Sprintf("the user %q was deleted before the backup", p.ask.User))
	case p.ask.User.IsZero() && !m.Whole:
		return fault.New(fault.Usage, "the backup is of one user, not of an instance").WithHint("name the user with --user")
	}
	return nil
}

// isRemoved reports whether the archive has no database of u because u was deleted.
func isRemoved(u archive.User) bool {
	return dbinstance.User{State: u.State, SchemaVersion: u.SchemaVersion}.IsRemoved()
}

// runRestore builds the databases and puts them in place.
func (p *restoreRun) runRestore(ctx context.Context) (err error) {
	lost, release, err := p.lockServe(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := p.findObstacle(ctx); err != nil {
		if k := fault.KindOf(err); !p.ask.DryRun || k != fault.Conflict && k != fault.Config {
			return err
		}
		p.report.Refusal = err.Error()
	}
	building, err := dump.New(p.in.DB).BeginRestoration(ctx, p.report.CreatedAt)
	if err != nil {
		return err
	}
	defer func() {
		left := building.Close(ctx)
		switch {
		case left == nil:
		case p.ask.DryRun && err == nil:
			err = fault.Wrap(fault.Partial, "the backup can be restored, but databases that were built to try it could not be dropped", left).
				WithHint("lightweb restore drops them when it runs again, also with --dry-run")
		default:
			p.in.Log.WarnContext(ctx, "unfinished databases not dropped, the next restore does", "err", left)
		}
	}()
	if err := p.fillDatabases(ctx, building); err != nil {
		return err
	}
	if p.ask.DryRun {
		return nil
	}
	for _, w := range p.write {
		if err := registry.CreateFile(w.path, func() ([]byte, error) { return w.data, nil }); err != nil {
			return fmt.Errorf("write %s: %w", w.path, err)
		}
	}
	select {
	case <-lost:
		return fault.New(fault.Busy, "the connection to the database was lost").WithHint("restore again: no database was put in place, and files that were missing and are written now stay")
	default:
	}
	p.report.PutAside, err = building.Commit(ctx, p.ask.User, p.ask.Replace)
	p.report.Blocks = building.Blocks()
	return err
}

// lockServe prevents engines from serving the instance during the restore. A dry run takes no
// lock, so it may run beside a serving engine.
func (p *restoreRun) lockServe(ctx context.Context) (lost <-chan struct{}, release func(), err error) {
	if p.ask.DryRun {
		return nil, func() {}, nil
	}
	release, lost, err = p.in.DB.Instance.Locks.Serve(ctx, "lightweb restore")
	if fault.KindOf(err) == fault.Conflict {
		err = fault.Wrap(fault.Busy, fault.Public(err), err).WithHint("stop it first; --dry-run can run beside it")
	}
	return lost, release, err
}

// findObstacle refuses a restore that existing data prevents, and collects the files to write.
// Only missing files are written, because a restore replaces no file.
func (p *restoreRun) findObstacle(ctx context.Context) error {
	names := make([]vocab.Username, len(p.users))
	for i, u := range p.users {
		names[i] = u.Name
	}
	if err := dump.New(p.in.DB).Obstacle(ctx, p.ask.User, names, p.ask.Replace); err != nil {
		return err
	}
	paths := map[archive.Name]string{}
	for _, u := range append(names, vocab.Username{}) {
		for _, f := range filesOf(p.in, u) {
			paths[f.name] = f.path
		}
	}
	for _, f := range p.archive.Files {
		path, wanted := paths[f.Name]
		if !wanted || f.Name.User.IsZero() && !p.report.Whole {
			continue
		}
		have, err := readUserFile(p.in, file{f.Name, path})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.write = append(p.write, newFile{path, f.Data})
		case err != nil:
			return err
		case bytes.Equal(have, f.Data):
		case f.Name.Kind == archive.Key && !p.ask.KeepKeys:
			return fault.New(fault.Conflict, path+" is another key than the backup holds").
				WithHint("move it away to use the backup's, which is older; or use it with --keep-keys")
		default:
			p.report.Kept = append(p.report.Kept, path)
		}
	}
	return p.checkKeys()
}

// checkKeys refuses to restore a user or an instance whose keys are missing. If the backup lacks
// keys, the operator must put them in place first.
func (p *restoreRun) checkKeys() error {
	if len(p.users) == 0 {
		return nil
	}
	written := map[string]bool{}
	for _, w := range p.write {
		written[w.path] = true
	}
	owners := []vocab.Username{{}} // the zero username has the keys of the instance
	for _, u := range p.users {
		if !isRemoved(u) {
			owners = append(owners, u.Name)
		}
	}
	for _, u := range owners {
		for _, path := range p.in.Keys.Files(u) {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !written[path] {
				return fault.New(fault.Config, "the backup does not hold the key "+path).WithHint("put the key there first: other servers know it")
			}
		}
	}
	return nil
}

// fillDatabases fills the new databases with the rows of the archive. Unless the restore is a dry
// run, it also stores the pictures in the archive.
func (p *restoreRun) fillDatabases(ctx context.Context, to *dump.Restoration) error {
	with := map[vocab.Username]bool{}
	err := p.archive.Each(ctx, func(n archive.Name, content io.Reader) error {
		if !n.User.IsZero() && !p.ask.User.IsZero() && n.User != p.ask.User {
			return nil
		}
		var rows int64
		var err error
		switch n.Kind {
		case archive.Shape:
			if !n.User.IsZero() {
				with[n.User] = true
				p.tellProgress(len(with) - 1)
			}
			err = beginDatabase(ctx, to, n.User, content)
		case archive.Rows:
			// From the instance database, a restore of one user needs only the table users.
			if p.ask.User.IsZero() || !n.User.IsZero() || n.Item == "users" {
				rows, err = to.Copy(ctx, n.User, n.Item, content)
			}
		case archive.Known:
			rows, err = to.CopyKnown(ctx, n.Item, content)
		case archive.Media:
			if !p.ask.DryRun {
				err = p.in.Registry.RestorePicture(n.User, n.Item, content)
			}
		}
		p.report.Rows += rows
		return err
	})
	if err != nil {
		return err
	}
	if p.report.Fenced, err = to.Finish(ctx); err != nil {
		return err
	}
	p.tellProgress(len(p.users))
	for _, u := range p.users {
		switch {
		case isRemoved(u) || with[u.Name]:
		case !p.ask.User.IsZero():
			return fault.New(fault.NotFound, fmt.Sprintf("the backup lacks the database of %s", u.Name)).WithHint("take another one")
		default:
			p.report.Without = append(p.report.Without, u.Name.String())
		}
	}
	return nil
}

// tellProgress calls Progress with the number of users that are done.
func (p *restoreRun) tellProgress(done int) {
	if p.ask.Progress != nil {
		p.ask.Progress(done, len(p.users))
	}
}

// beginDatabase creates a database with the tables that the archive's shape describes.
func beginDatabase(ctx context.Context, to *dump.Restoration, u vocab.Username, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	var shape dump.Shape
	if err := json.Unmarshal(data, &shape); err != nil {
		return fault.Wrap(fault.Invalid, "the backup does not say what a database holds", err)
	}
	return to.Begin(ctx, u, shape)
}
