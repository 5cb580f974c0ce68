package engine_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// The operator sets and removes passwords. A serving engine applies the change at once, and ends
// the sessions that were made with the old password.
func passwordCommands(t *testing.T, i *enginetest.Instance) {
	first, second := passwordFile(t, "correct horse battery"), passwordFile(t, "staple battery horse")
	runAll(t, i, []command{
		{"user create peggy --password-file " + first, 0, ""},
		{"user create peggy --if-not-exists --password-file " + second, 0, "left as it is"},
		{"user create victor --password-file " + passwordFile(t, "short"), 65, "8 characters"},
		{"user show victor", 67, "no user"},
		{"user passwd nobody_here --password-file " + first, 67, "no user"},
		{"user passwd nobody_here --remove", 67, "no user"},
		{"user passwd peggy --password-file " + passwordFile(t, strings.Repeat("x", 1025)), 65, "1,024 bytes"},
	})
	for _, quiet := range []string{"--json", "--quiet"} {
		if ran := i.Run(t, "user", "create", "peggy", "--if-not-exists", "--password-file", second, quiet); ran.Code != 0 || ran.Stderr != "" {
			t.Errorf("with %s it ends with %d, and warns %q; want no warning", quiet, ran.Code, ran.Stderr)
		}
	}
	enginetest.Eventually(t, "peggy is known", func() bool { return enginetest.Fetch(t, i.URL+"/users/peggy").Status == 200 })
	login := func(password string, want int) (session string) {
		t.Helper()
		a := logIn(t, i, "127.0.0.1", "peggy", password)
		if a.Status != want {
			t.Errorf("%q is answered %d %s, want %d", password, a.Status, a.Body, want)
		}
		if a.Status == http.StatusCreated {
			var made struct{ Session string }
			a.Decode(t, &made)
			session = made.Session
		}
		return session
	}
	answers := func(session string, want int) {
		t.Helper()
		u := &enginetest.User{Home: i, Name: "peggy", Token: session}
		if got := u.Ask(t, http.MethodGet, "/api/feed", nil).Status; got != want {
			t.Errorf("the session is answered %d, want %d", got, want)
		}
	}
	has := func(want bool) {
		t.Helper()
		var u struct {
			HasPassword *bool `json:"has_password"`
		}
		i.Run(t, "user", "show", "peggy", "--json").Decode(t, &u)
		if u.HasPassword == nil || *u.HasPassword != want {
			t.Errorf("user show says %v of a password, want %t", u.HasPassword, want)
		}
	}
	session := login("correct horse battery", 201)
	if list := i.Run(t, "user", "token", "list", "peggy", "--json"); !strings.Contains(list.Stdout, `"name":"password"`) || strings.Contains(list.Stdout, "argon2id") {
		t.Errorf("the list of tokens is %s, want the password's, without its hash", list.Stdout)
	}
	answers(session, 200)
	has(true)
	var set struct {
		User        string
		HasPassword bool `json:"has_password"`
	}
	if i.Run(t, "user", "passwd", "peggy", "--password-file", second, "--json").Decode(t, &set); set.User != "peggy" || !set.HasPassword {
		t.Errorf("user passwd --json wrote %+v", set)
	}
	answers(session, 401)
	login("correct horse battery", 401)
	session = login("staple battery horse", 201)
	runAll(t, i, []command{{"user passwd peggy --remove", 0, ""}, {"user passwd peggy --remove", 66, "no password"}})
	has(false)
	answers(session, 401)
	login("staple battery horse", 401)
}
