//go:build !linux

package enginetest

import "os/exec"

// dieWithParent would make sure that a test that is killed leaves no server behind: other systems have no way to say so.
func dieWithParent(*exec.Cmd) {}
