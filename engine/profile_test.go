package engine_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// A mistake in a profile does not make the user unavailable. user show, config check and the log
// report the mistake.
func TestABrokenProfileIsToldOfAndServed(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"config check", 0, ""}})
	alice := i.CreateUser(t, "alice")
	runAll(t, i, []command{{"config check", 0, ""}})
	alice.Configure(t, `{"follow_policy":"sometimes"}`)
	var shown struct {
		Refused string `json:"config_error"`
	}
	i.Run(t, "user", "show", "alice", "--json").Decode(t, &shown)
	if !strings.Contains(shown.Refused, "sometimes") || !strings.Contains(shown.Refused, filepath.Join("alice", "config.json")) {
		t.Errorf("user show says %q of the profile, want the file and why", shown.Refused)
	}
	runAll(t, i, []command{{"config check", 78, `"sometimes" is neither auto_accept nor approval_required`}})

	i.Start(t)
	page := enginetest.Fetch(t, alice.ID)
	if page.Status != http.StatusOK || !strings.Contains(string(page.Body), `"manuallyApprovesFollowers":true`) {
		t.Errorf("the actor is answered %d %s, want it closed", page.Status, page.Body)
	}
	if !strings.Contains(i.Log(), "configuration file refused: the user is closed to others") {
		t.Error("the log does not tell of the profile")
	}
}

// user create does not replace a profile that it cannot read, because a part of the profile would
// be lost.
func TestUserCreateDoesNotReplaceABrokenProfile(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	path := filepath.Join(i.DataDir, "users", "bob", "config.json")
	const broken = `{"follow_policy":"approval_required"`
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	runAll(t, i, []command{{"user create bob --display-name Bob", 78, "error: create user bob: read " + path}})
	if got, err := os.ReadFile(path); err != nil || string(got) != broken {
		t.Errorf("the profile is %q, %v, want it as it was", got, err)
	}
}
