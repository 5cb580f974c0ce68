package cmd

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestRootTrustsAFileOfTheWorkingFolderByItsOwner(t *testing.T) {
	t.Parallel()
	sudo := environment{"SUDO_UID=1000", "SUDO_GID=1001"}
	for _, tt := range []struct {
		name     string
		env      environment
		uid, gid uint32
		mode     fs.FileMode
		want     bool
	}{
		{"root's own", nil, 0, 0, 0o644, true},
		{"of root and its group", nil, 0, 0, 0o664, true},
		{"of root and another group", nil, 0, 50, 0o664, false},
		{"of root and everybody", nil, 0, 0, 0o646, false},
		{"somebody else's", nil, 1000, 1001, 0o600, false},
		{"of who calls sudo", sudo, 1000, 1001, 0o644, true},
		{"of who calls sudo and their group", sudo, 1000, 1001, 0o664, true},
		{"of who calls sudo and another group", sudo, 1000, 50, 0o664, false},
		{"of who calls sudo and everybody", sudo, 1000, 1001, 0o666, false},
		{"somebody else's, under sudo", sudo, 1001, 1001, 0o600, false},
		{"root's own, under sudo", sudo, 0, 0, 0o644, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.env.mayInstructRoot(tt.uid, tt.gid, tt.mode); got != tt.want {
				t.Errorf("mayInstructRoot = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRootRefusesTheSettingsOfAStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to somebody else")
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("lightweb.toml", []byte("data_dir = '/srv/stranger'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown("lightweb.toml", 12345, 12345); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := execute(nil, "config", "show")
	if code != 78 || !strings.Contains(stderr, "lightweb.toml") || !strings.Contains(stderr, "--config ./lightweb.toml") {
		t.Errorf("exit %d, %q, want 78 and a hint at --config", code, stderr)
	}
	for _, tt := range []struct {
		name string
		env  []string
		args []string
	}{
		{"a file that --config names", nil, []string{"--config", "./lightweb.toml"}},
		{"a file that the environment names", []string{"LIGHTWEB_CONFIG=lightweb.toml"}, nil},
		{"a file of who calls sudo", []string{"SUDO_UID=12345", "SUDO_GID=12345"}, nil},
	} {
		if code, stdout, stderr := execute(tt.env, append(tt.args, "config", "show")...); code != 0 || !strings.Contains(stdout, "/srv/stranger") {
			t.Errorf("%s: exit %d, %s, want 0 and its data_dir", tt.name, code, stderr)
		}
	}
	if err := errors.Join(os.Chown("lightweb.toml", 0, 0), os.Rename("lightweb.toml", "roots.toml"), os.Symlink("roots.toml", "lightweb.toml")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := execute(nil, "config", "show"); code != 78 || !strings.Contains(stderr, "lightweb.toml") {
		t.Errorf("a link to a file of root's: exit %d, %q, want 78", code, stderr)
	}
}
