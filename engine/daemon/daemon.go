// Package daemon has the rules by which several processes share a private server: which account
// it runs as, which locks decide who starts and stops it, which folder its socket is in, and
// whether a given process is that server.
//
// The locks are flock(2) locks, so the data directory must be on a local disk of a Unix system.
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

// MakeDir creates the data directory if it does not exist, and returns its absolute path without
// symbolic links, so that all processes find the same socket. A folder that root creates can be
// entered by others (mode 0711), because the account that the server runs as must enter it.
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
		if err := os.Chmod(dir, mode); err != nil { // restores bits that the umask cleared
			return "", Unusable(dir, err)
		}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", Unusable(dir, err)
	}
	return real, nil
}

// SocketDir returns the folder for a socket whose file has the given name. The folder is in dir,
// unless the path is too long for some Unix (104 bytes with the final zero) or contains a
// character that a connection string or a server's configuration cannot contain. Then the folder
// is in /tmp, not in os.TempDir, so that a service and a command line with another environment
// find the same folder.
func SocketDir(dir, name string) string {
	run := filepath.Join(dir, "run")
	if len(filepath.Join(run, name)) < 104 && !strings.ContainsAny(run, ",\\\"\n") {
		return run
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join("/tmp", "lw-"+hex.EncodeToString(sum[:6]))
}

// MakeSocketDir creates the folder. If the folder exists, MakeSocketDir checks that it belongs
// to the given account or to the user of this process, because in /tmp another user may have
// created it first.
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

// Unusable returns the fault for a data directory that cannot be used because of err.
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

// LastWords returns the last five lines of a server's log, which may tell why the server does not
// start.
func LastWords(log string) string {
	b, err := os.ReadFile(log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
