package enginetest

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/daemon"
)

// roles are the names of an instance's private Redis servers.
var roles = []string{"cache", "events"}

// Redis returns the process ID of the private Redis server with a role, or 0 while it does not run.
func (i *Instance) Redis(role string) int {
	dir := filepath.Join(i.DataDir, "redis", role)
	pid, standing := daemon.StandingOf(filepath.Join(dir, "redis.pid"), dir)
	if !standing.IsAlive() {
		return 0
	}
	return pid
}

// endRedis ends the servers that a killed process has left.
func (i *Instance) endRedis(t testing.TB) {
	t.Helper()
	for _, role := range roles {
		if pid := i.Redis(role); pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Errorf("end the private Redis of %s: %v", role, err)
			}
		}
		Eventually(t, "the private Redis has ended", func() bool { return i.Redis(role) == 0 })
	}
}
