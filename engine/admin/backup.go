package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lightweb/lightweb/db/dump"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Backups write and restore backups.
type Backups struct{ in *instance.Instance }

// BackupOptions says what to back up.
type BackupOptions struct {
	User     vocab.Username      // the user to back up; the whole instance if zero
	NoKeys   bool                // leave out the private keys
	Progress func(done, all int) // called after each user; may be nil
}

// BackupReport describes a backup.
type BackupReport struct {
	File      string          `json:"file,omitempty"`
	Bytes     int64           `json:"bytes"` // the size of the archive
	CreatedAt time.Time       `json:"created_at"`
	Whole     bool            `json:"whole"`
	Keys      bool            `json:"keys"`
	Users     int             `json:"users"`
	Rows      int64           `json:"rows"`
	Counts    map[string]int  `json:"counts,omitempty"` // only for a backup of one user: the number of items in each collection
	SHA256    string          `json:"sha256"`           // the digest of the archive
	Millis    int64           `json:"elapsed_ms"`
	Failures  []BackupFailure `json:"failures"` // users whose database could not be opened
}

// BackupFailure is a user whose database could not be opened. The backup still has the user's
// other data.
type BackupFailure struct {
	User  vocab.Username `json:"user"`
	Error string         `json:"error"`
	Hint  string         `json:"-"`
}

// WriteFile writes a backup to a file that only its owner can read. The file gets its final name,
// the parameter path, only when the backup is complete, and never replaces another file. The fault
// is Conflict when a file with that name exists, or when no file can be written in its folder.
func (bs Backups) WriteFile(ctx context.Context, path string, b BackupOptions) (BackupReport, error) {
	if _, err := os.Lstat(path); err == nil {
		return BackupReport{}, existsFault(path, fs.ErrExist)
	}
	f, err := createUnfinished(path)
	if err != nil {
		return BackupReport{}, fileFault(path, err)
	}
	sweepUnfinished(ctx, bs.in.Log, filepath.Dir(path))
	r, err := bs.Write(ctx, f, b)
	if err == nil {
		err = f.Sync()
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Path == f.Name() {
		err = fileFault(path, err)
	}
	if err == nil {
		err = placeFile(f.Name(), path) // before f is closed: another backup removes a file without a lock
	}
	if err != nil {
		return BackupReport{}, errors.Join(err, os.Remove(f.Name()), f.Close())
	}
	r.File = path
	return r, errors.Join(f.Close(), syncFolder(filepath.Dir(path)))
}

// syncFolder syncs dir, so that the file names in it survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Write writes a backup; the backup of one user is also the user's export. Write may run beside a
// serving engine. It reads the instance database first and the users' databases afterwards. So an
// activity that was accepted earlier is either in the journal that was read, or in the database of
// its recipient. Write reads a user's wishes before the user's database, and the acquaintances
// after it, so that the backup lacks no wish and no acquaintance. No user is removed meanwhile.
// The fault is NoUser when the user does not exist, and Gone when the user was deleted.
func (bs Backups) Write(ctx context.Context, to io.Writer, b BackupOptions) (BackupReport, error) {
	release, err := bs.in.DB.Instance.Locks.Backup(ctx)
	if err != nil {
		return BackupReport{}, err
	}
	defer release()
	began := time.Now()
	digest := sha256.New()
	count := &counter{to: io.MultiWriter(to, digest)}
	t := &backupRun{in: bs.in, ask: b, report: BackupReport{
		CreatedAt: bs.in.Now().UTC().Truncate(time.Second), Whole: b.User.IsZero(), Keys: !b.NoKeys, Failures: []BackupFailure{}}}
	err = t.writeAll(ctx, count)
	if count.err != nil { // it says why the COPY was aborted; the database's error does not
		err = count.err
	}
	if err != nil {
		return BackupReport{}, err
	}
	t.report.Users, t.report.Bytes, t.report.Millis = len(t.users), count.n, time.Since(began).Milliseconds()
	t.report.SHA256 = hex.EncodeToString(digest.Sum(nil))
	return t.report, nil
}

// counter counts the bytes written through it, and remembers its first error.
type counter struct {
	to  io.Writer
	n   int64
	err error
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// backupRun is one run of Write.
type backupRun struct {
	in     *instance.Instance
	ask    BackupOptions
	report BackupReport
	w      *archive.Writer
	users  []dbinstance.User
}

// writeAll writes the whole archive.
func (t *backupRun) writeAll(ctx context.Context, to io.Writer) error {
	if err := t.writeInstance(ctx, to); err != nil {
		return err
	}
	for i, u := range t.users {
		if err := t.writeUser(ctx, u); err != nil {
			return fmt.Errorf("back up %s: %w", u.Name, err)
		}
		if t.ask.Progress != nil {
			t.ask.Progress(i+1, len(t.users))
		}
	}
	if err := t.w.Close(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// writeInstance begins the archive. It writes the table users, the tables whose rows belong to no
// user, and the files of the instance. A backup of one user gets only that user's row.
func (t *backupRun) writeInstance(ctx context.Context, to io.Writer) error {
	nobody := vocab.Username{}
	err := dump.New(t.in.DB).SnapshotInstance(ctx, func(ctx context.Context, s *dump.Snapshot) error {
		if err := t.beginArchive(ctx, s, to); err != nil {
			return err
		}
		return t.writeTables(nobody, s.Shape, func(table dump.Table, w io.Writer) (int64, error) {
			switch {
			case table.Name == "users":
				return s.Copy(ctx, table, t.ask.User, w)
			case t.report.Whole && table.Owner == "":
				return s.Copy(ctx, table, nobody, w)
			}
			return 0, nil
		})
	})
	if err != nil || !t.report.Whole {
		return err
	}
	return t.writeFiles(nobody)
}

// beginArchive selects the users and writes the manifest.
func (t *backupRun) beginArchive(ctx context.Context, s *dump.Snapshot, to io.Writer) error {
	all, err := s.Users(ctx)
	if err != nil {
		return err
	}
	m := archive.Manifest{Version: t.in.Config.Version, CreatedAt: t.report.CreatedAt, PublicURL: t.in.Config.PublicURL, Whole: t.report.Whole, Keys: t.report.Keys, Users: []archive.User{}}
	for _, u := range all {
		if u.State == dbinstance.UserCreating || !t.ask.User.IsZero() && t.ask.User != u.Name {
			continue
		}
		t.users = append(t.users, u)
		m.Users = append(m.Users, archive.User{Name: u.Name, State: u.State, SchemaVersion: u.SchemaVersion})
	}
	switch {
	case t.report.Whole:
	case len(t.users) == 0:
		return fault.New(fault.NoUser, fmt.Sprintf("there is no user %q", t.ask.User)).WithHint("lightweb user list")
	case t.users[0].IsRemoved():
		return fault.New(fault.Gone, fmt.Sprintf("the user %q was deleted", t.ask.User)).WithHint("lightweb user list")
	}
	t.w, err = archive.NewWriter(to, m)
	return err
}

// writeTables writes the shape of a database, which lists its tables, and the rows of these
// tables.
func (t *backupRun) writeTables(u vocab.Username, shape dump.Shape, copyRows func(dump.Table, io.Writer) (int64, error)) error {
	data, err := json.MarshalIndent(shape, "", "  ")
	if err != nil {
		return err
	}
	if err := t.w.Add(archive.Name{User: u, Kind: archive.Shape}, data); err != nil {
		return err
	}
	for _, table := range shape.Tables {
		err := t.writeRows(archive.Name{User: u, Kind: archive.Rows, Item: table.Name}, func(w io.Writer) (int64, error) { return copyRows(table, w) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeRows writes the rows of one table, and counts them in the report.
func (t *backupRun) writeRows(n archive.Name, write func(io.Writer) (int64, error)) error {
	w := t.w.Rows(n)
	rows, err := write(w)
	t.report.Rows += rows
	return errors.Join(err, w.Close())
}

// writeUser writes a user's database and files, and the user's rows in the instance database. A
// user who was removed, or whose removal was cut short, has only those rows.
func (t *backupRun) writeUser(ctx context.Context, u dbinstance.User) error {
	if err := t.writeKnown(ctx, u, isWishes); err != nil {
		return err
	}
	if !u.IsRemoved() {
		if err := t.writeDatabase(ctx, u); err != nil {
			return err
		}
		if err := t.writeFiles(u.Name); err != nil {
			return err
		}
		if err := t.writePictures(u.Name); err != nil {
			return err
		}
	}
	return t.writeKnown(ctx, u, func(table dump.Table) bool { return !isWishes(table) })
}

// isWishes reports whether table is the table of wishes. It is written before the user's database
// and files, because the engine moves wishes there when it fulfils them. So a wish that is
// fulfilled meanwhile is in the backup at least as a wish. Fulfilling a wish twice changes
// nothing.
func isWishes(table dump.Table) bool { return table.Name == "wishes" }

// writeKnown writes the user's rows in the tables of the instance database for which the function
// selects returns true.
func (t *backupRun) writeKnown(ctx context.Context, u dbinstance.User, selects func(dump.Table) bool) error {
	return dump.New(t.in.DB).SnapshotInstance(ctx, func(ctx context.Context, s *dump.Snapshot) error {
		for _, table := range s.Shape.Tables {
			if table.Owner == "" || table.Name == "users" || !selects(table) {
				continue
			}
			err := t.writeRows(archive.Name{User: u.Name, Kind: archive.Known, Item: table.Name}, func(w io.Writer) (int64, error) {
				return s.Copy(ctx, table, u.Name, w)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// writeDatabase writes a user's database. If a database cannot be opened, a backup of the
// instance reports it as a failure and continues.
func (t *backupRun) writeDatabase(ctx context.Context, u dbinstance.User) error {
	opened := false
	err := dump.New(t.in.DB).SnapshotUser(ctx, u, func(ctx context.Context, s *dump.Snapshot) error {
		opened = true
		err := t.writeTables(u.Name, s.Shape, func(table dump.Table, w io.Writer) (int64, error) { return s.Copy(ctx, table, vocab.Username{}, w) })
		if err != nil {
			return err
		}
		return t.writeDocuments(ctx, u, s)
	})
	if err != nil && t.report.Whole && !opened && ctx.Err() == nil && fault.KindOf(err) == fault.Unavailable {
		t.report.Failures = append(t.report.Failures, BackupFailure{u.Name, err.Error(), fault.Hint(err)})
		return nil
	}
	return err
}

// writeFiles writes the configuration and keys of u, or of the instance when u is zero.
func (t *backupRun) writeFiles(u vocab.Username) error {
	for _, f := range filesOf(t.in, u) {
		if t.ask.NoKeys && f.name.Kind == archive.Key {
			continue
		}
		data, err := readUserFile(t.in, f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := t.w.Add(f.name, data); err != nil {
			return err
		}
	}
	return nil
}

// writePictures writes the pictures of u's profile. It skips a picture that is removed in the
// meantime, because no profile shows it.
func (t *backupRun) writePictures(u vocab.Username) error {
	names, err := t.in.Registry.ListPictures(u)
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := t.in.Registry.OpenPicture(u, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := t.w.Add(archive.Name{User: u, Kind: archive.Media, Item: name}, data); err != nil {
			return err
		}
	}
	return nil
}

// file is a configuration or key, with its name in an archive and its path on this machine.
type file struct {
	name archive.Name
	path string
}

// filesOf returns the files that u may have, or those of the instance when u is zero.
func filesOf(in *instance.Instance, u vocab.Username) []file {
	files := []file{{archive.Name{User: u, Kind: archive.Config}, in.Registry.File(u)}}
	for _, path := range in.Keys.Files(u) {
		files = append(files, file{archive.Name{User: u, Kind: archive.Key, Item: filepath.Base(path)}, path})
	}
	if !u.IsZero() {
		path := in.Keys.RetiredFile(u)
		files = append(files, file{archive.Name{User: u, Kind: archive.Key, Item: filepath.Base(path)}, path})
	}
	return files
}

// readUserFile returns the content of a configuration or key.
func readUserFile(in *instance.Instance, f file) ([]byte, error) {
	if f.name.Kind == archive.Key {
		return in.Keys.ReadFile(f.path)
	}
	return readFile(f.path)
}

// readFile returns the content of a file that an archive can have. The fault is TooLarge if the
// file is larger.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, archive.MaxFile+1))
	if len(data) > archive.MaxFile {
		err = fault.New(fault.TooLarge, path+" is larger than a configuration or key can be")
	}
	return data, errors.Join(err, f.Close())
}
