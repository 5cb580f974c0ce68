package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Standing is what can be known of the process that a pid file names.
type Standing uint8

// A server that is Ours or Unsure lives.
const (
	Gone   Standing = iota // there is no such file or no such process
	Other                  // something else that was given the number since
	Ours                   // the server of this folder
	Unsure                 // it lives, and this system does not tell what it is
)

// IsAlive reports whether the process may be the server.
func (s Standing) IsAlive() bool { return s == Ours || s == Unsure }

// StandingOf returns the process that the first line of pidFile names, and whether it is the
// server whose working directory is dir.
func StandingOf(pidFile, dir string) (pid int, s Standing) {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, Gone
	}
	first, _, _ := strings.Cut(string(b), "\n")
	if pid, err = strconv.Atoi(strings.TrimSpace(first)); err != nil || pid <= 0 {
		return 0, Other // a power cut has emptied the file
	}
	switch err := syscall.Kill(pid, 0); {
	case errors.Is(err, syscall.ESRCH):
		return pid, Gone
	case err != nil:
		return pid, Other // it belongs to a user who is not the server's
	}
	// A server's working directory is its data directory. A dead child that nobody has waited for
	// has none.
	data, err := os.Stat(dir)
	if err != nil {
		return pid, Unsure
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		return pid, Unsure
	}
	if cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && os.SameFile(cwd, data) {
		return pid, Ours
	}
	return pid, Other
}
