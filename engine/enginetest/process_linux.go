package enginetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the process of c end together with the test process. So a test that is
// killed or times out leaves no server running.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

// resolving returns a command that runs a program. The program sees the file conf as
// /etc/resolv.conf.
func resolving(conf, program string, args ...string) *exec.Cmd {
	c := exec.Command("/bin/sh", append([]string{"-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, conf, program}, args...)...)
	dieWithParent(c)
	c.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	return c
}
