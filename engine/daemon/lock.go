package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// Lock is a held flock(2). The kernel lets go of it when the process dies, however it dies.
type Lock struct{ f *os.File }

// TakeLock takes the lock at path, a file of as, waiting for others until ctx ends. how is LOCK_SH
// or LOCK_EX.
func TakeLock(ctx context.Context, path string, how int, as Account) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Unusable(path, err)
	}
	l := &Lock{f}
	if as.Drop { // what root made, the service itself must be able to open
		if err := f.Chown(as.UID, as.GID); err != nil {
			l.Release()
			return nil, Unusable(path, err)
		}
	}
	for {
		got, err := l.Try(how)
		if err == nil && got {
			return l, nil
		}
		if err == nil {
			if err = Sleep(ctx, 10*time.Millisecond); err != nil {
				err = fault.Wrap(fault.Busy, "another process is starting or stopping the private server", err)
			}
		}
		if err != nil {
			l.Release()
			return nil, err
		}
	}
}

// Try takes the lock in the way of how, or reports that others hold it. A lock that is held
// already changes its way; when that fails, it may be lost.
func (l *Lock) Try(how int) (bool, error) {
	err := syscall.Flock(int(l.f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("lock %s: %w", l.f.Name(), err)
}

// Release lets go. Closing alone would not do: a child that is just being started holds a copy of
// the descriptor until it has become another program, and with it the lock.
func (l *Lock) Release() {
	_ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN) // the close that follows does the same
	_ = l.f.Close()                                   // nothing was written
}
