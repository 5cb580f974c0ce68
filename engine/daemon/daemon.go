// Package daemon holds the rules by which processes share a private server of theirs: the account
// it runs as, the locks that say who starts and stops it, the folder of its socket, and whether a
// process is that server.
//
// Both locks are flock(2): the data directory must be on a local disk of a Unix.
package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// MakeDir makes the data directory where there is none, and returns its one name: all processes
// must find the same socket. A folder that root makes lets others through, as it must the account
// that the server runs as.
func MakeDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", Unusable(dir, err)
	}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, mode); err != nil {
			return "", Unusable(dir, err)
		}
		if err := os.Chmod(dir, mode); err != nil { // whatever the umask took away
			return "", Unusable(dir, err)
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", Unusable(dir, err)
	}
	return real, nil
}

// SocketDir returns the folder of a socket of that name: in dir, unless the path to it is longer
// than every Unix takes (104 bytes with the final zero) or has what a connection string or a
// server's configuration cannot say. The other place is /tmp and not os.TempDir, so that a service
// and a command line with another environment find the same.
func SocketDir(dir, name string) string {
	run := filepath.Join(dir, "run")
	if len(filepath.Join(run, name)) < 104 && !strings.ContainsAny(run, ",\\\"\n") {
		return run
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join("/tmp", "lw-"+hex.EncodeToString(sum[:6]))
}

// MakeSocketDir makes sure that the folder is there and nobody else's: in /tmp anybody may have
// been before us.
func MakeSocketDir(dir string, as Account) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return Unusable(dir, err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return Unusable(dir, err)
	}
	if uid, _ := OwnerOf(st); !st.IsDir() || uid != as.UID && uid != os.Geteuid() {
		return fault.Wrap(fault.Config, "the place of the socket is taken by somebody else", errors.New(dir)).
			WithHint("remove " + dir)
	}
	if err := as.Own(dir); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return Unusable(dir, err)
	}
	return nil
}

// Unusable says that the data directory cannot be worked in.
func Unusable(path string, err error) error {
	return fault.Wrap(fault.Config, "the data directory cannot be used", err).
		WithHint("let this user write in " + path + ", or choose another data directory")
}

// Sleep waits for d, or until ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
