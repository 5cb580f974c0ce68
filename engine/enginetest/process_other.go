//go:build !linux

package enginetest

import (
	"errors"
	"os/exec"
)

// dieWithParent does nothing, because other systems have no way to end a process with its parent.
func dieWithParent(*exec.Cmd) {}

// resolving returns a command that fails, because only Linux can give one process another
// /etc/resolv.conf.
func resolving(string, string, ...string) *exec.Cmd { return &exec.Cmd{Err: errors.ErrUnsupported} }
