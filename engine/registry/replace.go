package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// abandonedAfter is when a temporary file can no longer belong to a write under way.
const abandonedAfter = time.Hour

// openForReading opens path for reading. It does not wait for a writer, should path be a pipe.
func openForReading(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReplaceFile makes data the whole content of path. Whatever happens meanwhile, path holds the old
// content or the new, and when replace has returned the new content survives a power cut.
func ReplaceFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := makeFolder(dir); err != nil {
		return err
	}
	temp, err := prepareFile(path, data)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncFolder(dir)
}

// MoveFile gives a file another name, in the place of what had it. When it has returned nil that
// survives a power cut.
func MoveFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(to)), syncFolder(filepath.Dir(from)))
}

// CreateFile makes what content returns the content of path, with the care that a configuration is
// written with, unless there is a file already: that one then stays, and of several that create the
// same file at once one wins, whole. When it has returned nil the file, whoever made it, survives a
// power cut. Nobody but its owner can read it.
func CreateFile(path string, content func() ([]byte, error)) error {
	dir := filepath.Dir(path)
	if err := makeFolder(dir); err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return syncFolder(dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := content()
	if err != nil {
		return err
	}
	temp, err := prepareFile(path, data)
	if err != nil {
		return err
	}
	err = os.Link(temp, path) // unlike a rename, it never replaces
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp), syncFolder(dir))
}

// prepareFile writes data to a file beside path, and to the disk, and returns its name.
func prepareFile(path string, data []byte) (temp string, err error) {
	dir, base := filepath.Split(path)
	removeAbandoned(dir, base)
	f, err := os.CreateTemp(dir, "."+base+".*.tmp") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, adoptFile(f, dir), f.Sync(), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// removeAbandoned clears away what writes that were killed have left. It is housekeeping: the next
// write tries again.
func removeAbandoned(dir, base string) {
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*.tmp")) // the only error is of the pattern
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name) // as above
		}
	}
}

// makeFolder makes dir and what is missing above it, closed to others.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(adoptFile(f, parent), f.Close(), syncFolder(parent))
}

// LockFolder waits until no other process holds dir, and holds it until unlock, or the end of this
// process. The folder is made when there is none.
func LockFolder(dir string) (unlock func(), err error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return func() { _ = d.Close() }, nil // which unlocks; nothing was written that could be lost
}

// adoptFile gives f to the owner of dir when root wrote it: an administrator's command must not
// leave files that the engine, which runs as another user, cannot read.
func adoptFile(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// syncFolder makes the names in dir survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
