package enginetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes sure that a test that is killed, or runs out of time, leaves no server
// behind.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

// resolving returns a command that runs a program with another file in the place of
// /etc/resolv.conf.
func resolving(conf, program string, args ...string) *exec.Cmd {
	c := exec.Command("/bin/sh", append([]string{"-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, conf, program}, args...)...)
	dieWithParent(c)
	c.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	return c
}
