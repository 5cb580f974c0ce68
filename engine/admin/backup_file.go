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
)

// unfinished is how the names of files end that backups are written to. Who writes one holds its
// lock until it is renamed, or the process ends, however that comes.
const unfinished = ".lightweb-unfinished"

// createUnfinished makes and locks the file that the backup path is written to. Only its owner can
// read it.
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
		if err := f.Close(); err != nil { // a sweep came before the lock, and removes the file
			return nil, err
		}
	}
	return nil, fmt.Errorf("no file in %s could be locked", filepath.Dir(path))
}

// sweepUnfinished removes from a folder what backups left there whose processes were killed. The
// log tells of what it cannot remove: that is no reason to make no backup.
func sweepUnfinished(ctx context.Context, log *slog.Logger, dir string) {
	names, err := os.ReadDir(dir)
	for _, n := range names {
		if strings.HasSuffix(n.Name(), unfinished) && n.Type().IsRegular() {
			err = errors.Join(err, removeAbandoned(filepath.Join(dir, n.Name())))
		}
	}
	if err != nil {
		log.WarnContext(ctx, "what killed backups left could not be removed", "err", err)
	}
}

// removeAbandoned removes a file that nobody writes.
func removeAbandoned(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) { // it was finished, or swept by somebody else
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

// lockFile locks f as long as it is open, and reports whether it is ours: nobody else has it
// locked, or has renamed or removed it.
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
