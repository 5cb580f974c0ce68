package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// lock is a held flock(2). The kernel lets go of it when the process dies, however it dies.
type lock struct{ f *os.File }

// lock takes the named lock of the data directory, waiting for others until ctx ends.
func (c *Cluster) lock(ctx context.Context, name string, how int) (*lock, error) {
	path := filepath.Join(c.dir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unusable(path, err)
	}
	l := &lock{f}
	if c.as.drop { // what root made, the service itself must be able to open
		if err := f.Chown(c.as.uid, c.as.gid); err != nil {
			l.release()
			return nil, unusable(path, err)
		}
	}
	for {
		got, err := l.try(how)
		if err == nil && got {
			return l, nil
		}
		if err == nil {
			if err = sleep(ctx, 10*time.Millisecond); err != nil {
				err = fault.Wrap(fault.Busy, "another process is starting or stopping the database", err)
			}
		}
		if err != nil {
			l.release()
			return nil, err
		}
	}
}

// try takes the lock in the way of how, or reports that others hold it. A lock that is held
// already changes its way; when that fails, it may be lost.
func (l *lock) try(how int) (bool, error) {
	err := syscall.Flock(int(l.f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("lock %s: %w", l.f.Name(), err)
}

// release lets go. Closing alone would not do: a child that is just being started holds a copy of
// the descriptor until it has become another program, and with it the lock.
func (l *lock) release() {
	_ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN) // the close that follows does the same
	_ = l.f.Close()                                   // nothing was written
}
