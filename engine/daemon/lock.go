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

// Lock is a flock(2) that this process holds. The kernel releases it when the process ends,
// however it ends.
type Lock struct{ f *os.File }

// TakeLock takes the lock on the file at path. If there is no file, TakeLock creates one that the
// given account can open. While others hold the lock, TakeLock waits, but not after ctx has ended.
// The parameter how is LOCK_SH or LOCK_EX.
func TakeLock(ctx context.Context, path string, how int, as Account) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, Unusable(path, err)
	}
	l := &Lock{f}
	if as.Drop { // the server's account must be able to open a file that root created
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

// Try takes the lock without waiting. The parameter how is LOCK_SH or LOCK_EX. Try returns false
// if others hold the lock. A lock that l holds already is converted to the new mode; if that
// fails, the lock may be lost.
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

// Release releases the lock. Closing the file is not enough, because a child that is just being
// started has a copy of the descriptor, which keeps the lock until the child has executed its
// program.
func (l *Lock) Release() {
	// An error does not matter, because the file is closed next.
	_ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN)
	_ = l.f.Close() // nothing was written
}
