package daemon

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Standing says how the process whose number is in a pid file relates to the server.
type Standing uint8

// If the standing is Ours or Unsure, the server must be treated as alive.
const (
	Gone   Standing = iota // the pid file or the process does not exist
	Other                  // the number now belongs to another process, or the file has no number
	Ours                   // the process is the server of this folder
	Unsure                 // the process exists, but the system does not show which program it is
)

// IsAlive reports whether the process may be the server.
func (s Standing) IsAlive() bool { return s == Ours || s == Unsure }

// StandingOf returns the process id in the first line of pidFile, and whether that process is
// the server whose working directory is dir.
func StandingOf(pidFile, dir string) (pid int, s Standing) {
	b, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, Gone
	}
	first, _, _ := strings.Cut(string(b), "\n")
	if pid, err = strconv.Atoi(strings.TrimSpace(first)); err != nil || pid <= 0 {
		return 0, Other // for instance, a power cut has emptied the file
	}
	switch err := syscall.Kill(pid, 0); {
	case errors.Is(err, syscall.ESRCH):
		return pid, Gone
	case err != nil:
		return pid, Other // the process belongs to another user than the server's
	}
	// A server's working directory is its data directory. A zombie process has no working
	// directory.
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
