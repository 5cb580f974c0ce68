package enginetest

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes sure that a test that is killed, or runs out of time, leaves no server behind.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
