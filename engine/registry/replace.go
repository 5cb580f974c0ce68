package registry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// abandonedAfter is the age from which no running write can own a temporary file any more.
const abandonedAfter = time.Hour

// openForReading opens path for reading. If path is a pipe, it does not wait for a writer.
func openForReading(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReplaceFile replaces the content of path by data. At any time, path holds either all of the
// old content or all of the new. Once ReplaceFile has returned nil, the new content survives a
// power cut.
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

// MoveFile renames a file, and replaces a file that has the new name. Once MoveFile has returned
// nil, the rename survives a power cut.
func MoveFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(to)), syncFolder(filepath.Dir(from)))
}

// CreateFile writes the result of the function content to a new file at path, as safely as
// ReplaceFile. If the file exists already, it stays as it is. If several callers create the same
// file at the same time, the complete content of one caller stays. Once CreateFile has returned
// nil, the file survives a power cut, even if another caller made it. Only the owner of the file
// can read it.
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
	err = os.Link(temp, path) // unlike a rename, a link never replaces a file
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp), syncFolder(dir))
}

// prepareFile writes data to a temporary file in the folder of path, syncs it to the disk, and
// returns its name.
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

// removeAbandoned removes temporary files of writes that were killed. It ignores errors, because
// the next write tries again.
func removeAbandoned(dir, base string) {
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*.tmp")) // fails only for a bad pattern
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name) // the next write tries again
		}
	}
}

// makeFolder makes dir and its missing parents. Only the owner has access to them.
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

// LockFolder locks dir against other processes that lock it. It waits while another process has
// the lock. The lock lasts until unlock is called or this process ends. The folder is made if
// there is none.
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
	return func() { _ = d.Close() }, nil // this unlocks; nothing was written to d
}

// adoptFile gives f to the owner of dir if this process runs as root. An administrator's command
// must not leave files that the engine, which runs as another user, cannot read.
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

// syncFolder syncs dir to the disk, so that the names in it survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
