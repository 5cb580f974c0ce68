package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A display name that no profile may have is refused before anything of the user is made.
func TestARefusedDisplayNameMakesNoUser(t *testing.T) {
	t.Parallel()
	runAll(t, enginetest.Make(t), []command{
		{"user create alice --display-name " + strings.Repeat("x", 101), 65, "profile.name has 101 characters"},
		{"user show alice", 67, ""},
	})
}

// Commands read, set, edit and check the configuration files of users.
func TestUserConfigurationsAreChangedByCommands(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"user create alice -q", 0, ""}, {"user create bob --display-name Bob -q", 0, ""}})
	path := filepath.Join(i.DataDir, "users", "alice", "config.json")
	settled := func() (c struct {
		Profile   struct{ Name string }
		Languages []string
	}) {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(content, &c); err != nil {
			t.Fatalf("%s: %v", content, err)
		}
		return c
	}
	if settled().Languages == nil {
		t.Error("user create wrote no example")
	}
	runAll(t, i, []command{
		{"user config get nobody_here", 67, "no user"},
		{"user config set nobody_here profile.name x", 67, "no user"},
		{"user config check nobody_here", 67, "no user"},
		{"user config edit nobody_here", 67, "no user"},
		{"user config get alice profile.nmae", 65, "did you mean profile.name?"},
		{"user config set alice discoverable maybe", 65, "neither true nor false"},
		{"user config set alice profile.icon a.png", 65, "is not the address of a picture"},
		{"user config check", 64, "either users or --all"},
		{"user config check --all", 0, ""},
	})
	for _, value := range []struct{ key, value, shown string }{
		{"profile.name", "Alice Example", "Alice Example\n"},
		{"languages", `["de", "en"]`, `["de","en"]` + "\n"},
		{"profile.summary", "one\ntwo", "one\ntwo\n"},
	} {
		if got := i.Run(t, "user", "config", "set", "alice", value.key, value.value); got.Code != 0 {
			t.Errorf("user config set %s ended with %d: %s", value.key, got.Code, got.Stderr)
		}
		if got := i.Run(t, "user", "config", "get", "alice", value.key); got.Code != 0 || got.Stdout != value.shown {
			t.Errorf("user config get %s wrote %q, %s, want %q", value.key, got.Stdout, got.Stderr, value.shown)
		}
	}
	if got := settled(); got.Profile.Name != "Alice Example" || len(got.Languages) != 2 {
		t.Errorf("the file holds %+v", got)
	}
	var all struct {
		Config struct {
			Profile      struct{ Name string }
			FollowPolicy string `json:"follow_policy"`
		}
	}
	i.Run(t, "user", "config", "get", "bob", "--json").Decode(t, &all)
	if all.Config.Profile.Name != "Bob" || all.Config.FollowPolicy != "auto_accept" {
		t.Errorf("user config get --json wrote %+v", all)
	}
}

// user config edit checks a file before the file replaces the old one. It keeps a copy of a
// refused edit.
func TestAnEditedConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"user create alice -q", 0, ""}})
	path := filepath.Join(i.DataDir, "users", "alice", "config.json")
	edit := func(with string) enginetest.Ran {
		i.Set("EDITOR=" + with)
		return i.Run(t, "user", "config", "edit", "alice")
	}
	if got := edit("true"); got.Code != 0 || !strings.Contains(got.Stdout, "nothing was changed") {
		t.Errorf("an edit that changes nothing ended with %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := edit(`sed -i 's/"name": ""/"name": "Alice"/'`); got.Code != 0 {
		t.Errorf("an edit ended with %d: %s", got.Code, got.Stderr)
	}
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), `"name": "Alice"`) {
		t.Errorf("the file is %s, %v", before, err)
	}
	refused := edit(`sed -i 's/"name"/"nmae"/'`)
	_, kept, named := strings.Cut(strings.TrimSpace(refused.Stderr), "your copy is kept: ")
	if refused.Code != 65 || !strings.Contains(refused.Stderr, `did you mean "name"?`) || !named {
		t.Errorf("an edit with a slip ended with %d: %s", refused.Code, refused.Stderr)
	}
	if copied, err := os.ReadFile(kept); err != nil || !strings.Contains(string(copied), "nmae") {
		t.Errorf("the copy is %s, %v", copied, err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file is %s, %v, want it as it was", after, err)
	}
	if got := edit("false"); got.Code != 65 || !strings.Contains(got.Stderr, `the editor "false" failed`) {
		t.Errorf("an editor that fails ended with %d: %s", got.Code, got.Stderr)
	}
	if got := edit(`sh -c 'echo "{}" >` + path + `; echo "{\"discoverable\":true}" >"$0"'`); got.Code != 73 {
		t.Errorf("an edit of a file that changed ended with %d: %s", got.Code, got.Stderr)
	}
	if err := os.WriteFile(path, []byte(`{"profil":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := i.Run(t, "user", "config", "check", "--all"); got.Code != 78 || !strings.Contains(got.Stderr, "1 of 1 files cannot be used") ||
		!strings.HasPrefix(got.Stdout, "alice\t"+path+"\t") || !strings.Contains(got.Stdout, `unknown key "profil"`) {
		t.Errorf("user config check --all ended with %d: %s%s", got.Code, got.Stdout, got.Stderr)
	}
	runAll(t, i, []command{
		{"user config get alice", 78, `unknown key "profil", did you mean "profile"?`},
		{"user config set alice profile.name Alice", 78, "profil"},
	})
	if got := edit(`sed -i s/profil/profile/`); got.Code != 0 {
		t.Errorf("an edit that mends the file ended with %d: %s", got.Code, got.Stderr)
	}
	runAll(t, i, []command{{"user config check alice", 0, ""}})
}

// A full disk is not reported as a bug. The command names the file that it could not write, and
// says what to do.
func TestAFullDiskIsReportedAsOne(t *testing.T) {
	t.Parallel()
	disk := enginetest.NewDisk(t, 1)
	i := enginetest.Make(t, "LIGHTWEB_USERS_DIR="+disk.Dir)
	runAll(t, i, []command{{"user create alice", 0, ""}})
	disk.Fill(t)
	runAll(t, i, []command{
		{"user config set alice profile.name x", 73, "hint: free some space"},
		{"user rotate-keys alice --yes", 73, "hint: free some space"},
		{"user create bob", 73, "hint: free some space"},
	})
}

// Ctrl-C in an editor is meant for the editor. The terminal sends SIGINT to both processes, and
// the edit goes on. SIGTERM ends the command, which says where the copy of the edit is.
func TestAnEditOutlivesAnInterrupt(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"user create alice -q", 0, ""}})
	i.Set(`EDITOR=trap '' INT; kill -INT $PPID; kill -INT $PPID; sed -i 's/"name": ""/"name": "Alice"/'`)
	if got := i.Run(t, "user", "config", "edit", "alice"); got.Code != 0 {
		t.Errorf("an edit with Ctrl-C ended with %d: %s", got.Code, got.Stderr)
	}
	got, err := os.ReadFile(filepath.Join(i.DataDir, "users", "alice", "config.json"))
	if err != nil || !strings.Contains(string(got), `"name": "Alice"`) {
		t.Errorf("the file is %s, %v", got, err)
	}
	i.Set(`EDITOR=kill -TERM $PPID; exec tail -f /dev/null`)
	stopped := i.Run(t, "user", "config", "edit", "alice")
	_, kept, isNamed := strings.Cut(strings.TrimSpace(stopped.Stderr), "your copy is kept: ")
	if _, err := os.Stat(kept); stopped.Code != 143 || !isNamed || err != nil {
		t.Errorf("an edit with SIGTERM ended with %d: %s, %v, want 143 and a copy", stopped.Code, stopped.Stderr, err)
	}
}
