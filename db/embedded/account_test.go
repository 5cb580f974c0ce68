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

	"github.com/lightweb/lightweb/engine/fault"
)

// A cluster that root makes is for an account of its own: as nobody many programs run, and could
// read it.
func TestRootGivesTheClusterToAnAccountOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to give folders away")
	}
	system := map[string]string{"lightweb": "801", "postgres": "802", "nobody": "803"}
	for _, tt := range []struct {
		name  string
		has   string // users of this system
		owner int    // of the data directory
		want  int    // 0: refused
	}{
		{"lightweb first", "lightweb postgres nobody", 0, 801},
		{"else postgres", "postgres nobody", 0, 802},
		{"never nobody", "nobody", 0, 0},
		{"the owner of the folder before both", "lightweb postgres nobody", 900, 900},
		{"but for nobody", "lightweb postgres nobody", 803, 801},
		{"not even where there is none else", "nobody", 803, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, os.Chown(dir, tt.owner, tt.owner))
			look := accounts(func(name string) (*user.User, error) {
				if !strings.Contains(tt.has, name) {
					return nil, user.UnknownUserError(name)
				}
				return &user.User{Uid: system[name], Gid: system[name]}, nil
			})
			a, err := look.unprivileged(dir, filepath.Join(dir, "pg"))
			if tt.want == 0 {
				if fault.KindOf(err) != fault.Config || fault.Hint(err) != "'useradd --system lightweb'" {
					t.Errorf("unprivileged = %+v, %v, hint %q; want that a user is to be made", a, err, fault.Hint(err))
				}
				return
			}
			if err != nil || a.uid != tt.want || a.gid != tt.want || !a.drop || a.shared {
				t.Errorf("unprivileged = %+v, %v, want user %d", a, err, tt.want)
			}
		})
	}
}

// A cluster that an earlier lightweb made for nobody starts, and each start says once how to move
// it. The command does so.
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
	if warning != "" || moved.as.uid == uid {
		t.Errorf("after %s the cluster runs as %s, with the warning %q", command, moved.as.name, warning)
	}
}
