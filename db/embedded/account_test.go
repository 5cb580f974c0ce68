package embedded

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// An earlier lightweb ran the cluster as the system's user nobody. Such a cluster starts. Each
// start logs one warning with the command that moves the cluster to another user. The command
// works.
func TestAClusterOfNobodysStartsAndSaysHowToMoveIt(t *testing.T) {
	t.Parallel()
	nobody, err := user.Lookup("nobody")
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root, and a user nobody")
	}
	uid, err1 := strconv.Atoi(nobody.Uid)
	gid, err2 := strconv.Atoi(nobody.Gid)
	must(t, errors.Join(err1, err2))
	dir := madeDir(t, "data")
	must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return os.Lchown(path, uid, gid)
	}))
	open := func() (c *Cluster, warning string) {
		t.Helper()
		var log lines
		c, err := Open(t.Context(), Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		must(t, err)
		t.Cleanup(func() { mustClose(t, c) })
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "level=WARN") {
				warning += line
			}
		}
		return c, warning
	}
	c, warning := open()
	mustAnswer(t, c)
	if strings.Count(warning, "\n") != 1 || !strings.Contains(warning, "runs as nobody") {
		t.Fatalf("the first to open was warned %q, want one warning", warning)
	}
	second, again := open()
	if again != "" {
		t.Errorf("a second process was warned %q", again)
	}
	mustClose(t, second)
	mustClose(t, c)

	_, command, _ := strings.Cut(warning, "then '")
	command, _, _ = strings.Cut(command, "'")
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	moved, warning := open()
	mustAnswer(t, moved)
	if warning != "" || moved.as.UID == uid {
		t.Errorf("after %s the cluster runs as %s, with the warning %q", command, moved.as.Name, warning)
	}
}
