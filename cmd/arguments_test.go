package cmd

import (
	"slices"
	"strings"
	"testing"
)

func TestAnArgumentThatNoDatabaseStoresIsRefused(t *testing.T) {
	// The port is closed, so a command that goes on to the database ends with 69.
	env := []string{"LIGHTWEB_DATA_DIR=" + t.TempDir(), "LIGHTWEB_DATABASE_URL=postgres://lightweb@127.0.0.1:1"}
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"a note", []string{"report", "resolve", "1", "--note", "caf\xe9"}, "--note has bytes that are not UTF-8"},
		{"the name of a token", []string{"user", "token", "create", "alice", "--name=a\x00b"}, "--name has a NUL character"},
		{"an item of a list", []string{"deliver", "list", "--all", "--host", "a.example,b\xff.example"}, "--host has bytes that are not UTF-8"},
		{"a subject", []string{"user", "link-oidc", "alice", "\xffid"}, `"\xffid" has bytes that are not UTF-8`},
		{"one of several", []string{"domain", "block", "a.example", "b\xff.example"}, `"b\xff.example" has bytes that are not UTF-8`},
		{"a setting", []string{"user", "list", "--database-url", "postgres://a:hunter2\xff@127.0.0.1:1"}, "--database-url has bytes that are not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := execute(env, tt.args...)
			if code != 64 || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") > 2 || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit %d, %q, %q, want 64 and %q", code, stdout, stderr, tt.want)
			}
		})
	}
}

// File systems have names that are not UTF-8, and no database stores them.
func TestAFileMayHaveAnyName(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"sig", "explain", dir + "/caf\xe9"},
		{"sig", "explain", "-", "--key", dir + "/caf\xe9"},
		{"user", "passwd", "alice", "--password-file", dir + "/caf\xe9"},
	} {
		if code, _, stderr := execute(nil, slices.Concat(args, []string{"--data-dir", dir + "/\xff"})...); code != 66 {
			t.Errorf("lightweb %q: exit %d, %q, want 66", args, code, stderr)
		}
	}
}
