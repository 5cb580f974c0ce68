package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

// unfinished is the suffix of files to which a backup is being written. The writer holds a lock
// on the file until the file has its final name or the process ends.
const unfinished = ".lightweb-unfinished"

// fileFault returns the fault of a backup whose file cannot be written.
func fileFault(path string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(fault.Conflict, "the disk of the backup "+path+" is full", err).WithHint("make room there, or write the backup elsewhere")
	}
	return fault.Wrap(fault.Conflict, "the backup "+path+" cannot be written", err).
		WithHint("is the folder there, may you write into it, and is its disk sound?")
}

// createUnfinished creates and locks a temporary file beside path, to which the backup is
// written. Only its owner can read it.
func createUnfinished(path string) (*os.File, error) {
	for range 10 {
		f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+unfinished) // mode 0600
		if err != nil {
			return nil, err
		}
		held, err := lockFile(f)
		if err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
		if held {
			return f, nil
		}
		if err := f.Close(); err != nil { // another process locked the file first, and removes it
			return nil, err
		}
	}
	return nil, fmt.Errorf("no file in %s could be locked", filepath.Dir(path))
}

// placeFile gives a file that is complete its final name, and takes the temporary name from it. It
// never replaces a file. The fault is Conflict when path exists or cannot be made.
func placeFile(temp, path string) error {
	err := os.Link(temp, path) // unlike a rename, a link never replaces a file
	if err == nil {
		return os.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return existsFault(path, err)
	}
	return moveFile(temp, path) // the file system may have no links
}

// moveFile does what placeFile does, without a link. It makes an empty file first, which the
// rename replaces.
func moveFile(temp, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return existsFault(path, err)
	}
	if err != nil {
		return fileFault(path, err)
	}
	if err := errors.Join(f.Close(), os.Rename(temp, path)); err != nil {
		return errors.Join(fileFault(path, err), os.Remove(path))
	}
	return nil
}

// existsFault returns the fault of a backup to a file that exists already.
func existsFault(path string, err error) error {
	return fault.Wrap(fault.Conflict, path+" is there already", err).WithHint("a backup never replaces a file: take another name")
}

// sweepUnfinished removes the files that killed backups left in a folder. If a file cannot be
// removed, it logs the error and does not stop the backup.
func sweepUnfinished(ctx context.Context, log *slog.Logger, dir string) {
	names, err := os.ReadDir(dir)
	for _, n := range names {
		if strings.HasSuffix(n.Name(), unfinished) && n.Type().IsRegular() {
			err = errors.Join(err, removeAbandoned(filepath.Join(dir, n.Name())))
		}
	}
	if err != nil {
		log.WarnContext(ctx, "the files that killed backups left could not be removed", "err", err)
	}
}

// removeAbandoned removes a file, unless another process has locked it and is still writing it.
func removeAbandoned(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) { // the file was renamed, or another process removed it
		return nil
	}
	if err != nil {
		return err
	}
	held, err := lockFile(f)
	if held {
		err = os.Remove(path)
	}
	return errors.Join(err, f.Close())
}

// lockFile locks f until f is closed. It reports true if this process has the file, that is, no
// other process has locked, renamed or removed it.
func lockFile(f *os.File) (bool, error) {
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}
