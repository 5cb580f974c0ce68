package engine_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Scripts rely on the keys in the commands' JSON and on the exit codes.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	t.Run("without an engine that serves", func(t *testing.T) { commandsWithoutServe(t, i) })
	other := enginetest.Start(t)
	i.Start(t)
	i.HangUp(t) // the engine continues to serve
	t.Run("beside an engine that serves", func(t *testing.T) { commandsBesideServe(t, i) })
	t.Run("passwords", func(t *testing.T) { passwordCommands(t, i) })
	t.Run("no example client", func(t *testing.T) { noClientBesideServe(t, i) })
	t.Run("a create that is killed", func(t *testing.T) { createThatIsKilled(t, i) })
	t.Run("creates at once", func(t *testing.T) { createsAtOnce(t, i) })
	t.Run("actor fetch", func(t *testing.T) { actorFetch(t, i, other) })
	t.Run("sig explain", func(t *testing.T) { sigExplain(t, i) })
	t.Run("cache", func(t *testing.T) { cacheCommands(t, i) })
	t.Run("refusals of serve", func(t *testing.T) { refusalsOfServe(t, i) })
}

func TestDemo(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	demo := i.Run(t, "serve", "--demo", "--once")
	if demo.Code == 69 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+demo.Stderr)
	}
	if demo.Code != 0 || strings.Count(demo.Stdout, "✓") < 4 {
		t.Errorf("the demonstration ended with %d and told\n%s\n%s\nwant 0 and a tick for everything", demo.Code, demo.Stdout, demo.Stderr)
	}
}

// startDemo starts the demonstration with further arguments. It returns a scanner of the lines
// that the demonstration prints. The demonstration ends with the test.
func startDemo(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	demo := exec.Command(enginetest.Binary(t), append([]string{"serve", "--demo"}, args...)...)
	demo.Env = append(os.Environ(), "LIGHTWEB_DATA_DIR="+t.TempDir())
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = demo.Process.Signal(os.Interrupt) // the demonstration may have ended already
		if err := demo.Wait(); err != nil {
			t.Errorf("the demonstration ended with %v", err)
		}
	})
	return bufio.NewScanner(out)
}

// The commands that the demonstration prints work. alice's stream shows bob's like.
func TestTheCommandsOfTheDemoWork(t *testing.T) {
	t.Parallel()
	script, isTold := "set -eu\n", false
	for lines := startDemo(t); strings.Count(script, "/api/activity'") < 2; {
		if !lines.Scan() {
			t.Fatalf("the demonstration told no more than %q", script)
		}
		command, isCommand := strings.CutPrefix(lines.Text(), "  ")
		isTold = isTold || strings.HasPrefix(lines.Text(), "both keep serving")
		if isTold && isCommand {
			script += command + "\n"
		}
	}
	said := filepath.Join(t.TempDir(), "said")
	f, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdout, shell.Stderr, shell.SysProcAttr = f, f, &syscall.SysProcAttr{Setsid: true}
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) // ends the shell and the stream that it reads
		_ = shell.Wait()                                      // the error says that the shell was killed
	})
	stream, like, _ := strings.Cut(script, "&\n")
	for _, step := range []struct{ commands, said string }{{stream + "&\n", "event: hello"}, {like + "wait\n", "event: like.received"}} {
		if _, err := io.WriteString(in, step.commands); err != nil {
			t.Fatal(err)
		}
		enginetest.Eventually(t, "alice's stream says "+step.said, func() bool {
			b, err := os.ReadFile(said)
			return err == nil && strings.Contains(string(b), step.said)
		})
	}
	if b, err := os.ReadFile(said); err != nil || strings.Count(string(b), `"activityId"`) != 2 || !strings.Contains(string(b), `"preferredUsername":"bob"`) {
		t.Errorf("the commands of the demonstration say\n%s\n%v", b, err)
	}
}

// command is a run of lightweb with the expected result.
type command struct {
	line   string
	code   int
	stderr string // a text that standard error contains; with --json, the code of the error
}

func runAll(t *testing.T, i *enginetest.Instance, commands []command) {
	t.Helper()
	for _, c := range commands {
		got := i.Run(t, strings.Fields(c.line)...)
		if got.Code != c.code || !strings.Contains(got.Stderr, c.stderr) {
			t.Errorf("lightweb %s ended with %d and said %q, want %d and %q", c.line, got.Code, got.Stderr, c.code, c.stderr)
		}
		if c.code != 0 && got.Stdout != "" {
			t.Errorf("lightweb %s failed and wrote %q to standard output", c.line, got.Stdout)
		}
	}
}

// fields holds the properties of a user in JSON.
type fields struct {
	User, Actor, Handle, State, Database, Token string
	SchemaVersion                               int `json:"schema_version"`
	Keys                                        []string
	Created                                     bool
}

func commandsWithoutServe(t *testing.T, i *enginetest.Instance) {
	made := i.Run(t, "user", "create", "alice", "--token", "--json", "--display-name", "Alice Example")
	if made.Code == 69 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+made.Stderr)
	}
	if made.Code != 0 {
		t.Fatalf("user create ended with %d: %s", made.Code, made.Stderr)
	}
	if i.Postmaster() != 0 {
		t.Error("user create left PostgreSQL running")
	}
	var u fields
	made.Decode(t, &u)
	want := fields{User: "alice", Actor: i.URL + "/users/alice", Handle: "@alice@" + strings.TrimPrefix(i.URL, "http://"),
		Database: "lightweb_alice", SchemaVersion: u.SchemaVersion, Keys: []string{"ed25519", "rsa"}, Token: u.Token, Created: true}
	if fmt.Sprint(u) != fmt.Sprint(want) || u.SchemaVersion < 1 || !strings.HasPrefix(u.Token, "lw_alice_") {
		t.Errorf("user create --json wrote %+v, want %+v", u, want)
	}
	for _, key := range u.Keys {
		st, err := os.Stat(filepath.Join(i.DataDir, "users", "alice", "keys", key+".pem"))
		if err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("key %s: %v, %v; want a file with mode 0600", key, st, err)
		}
	}
}

func commandsBesideServe(t *testing.T, i *enginetest.Instance) {
	runAll(t, i, []command{
		{"user create alice", 73, "exists already"},
		{"user create alice --json", 73, `"code":"conflict"`},
		{"user create alice --if-not-exists", 0, ""},
		{"user create Alice", 65, "not a username"},
		{"user create admin", 65, "reserved"},
		{"user show nobody_here", 67, "no user"},
		{"user show nobody_here --json", 67, `"code":"no_user"`},
		{"user token create nobody_here", 67, "no user"},
		{"user token list nobody_here", 67, "no user"},
		{"user token revoke alice 0192d3a4-0000-7000-8000-000000000000 --yes", 66, "no such token"},
		{"user token revoke alice 1 --yes", 65, "not the id of a token"},
		{"user create bob -q", 0, ""},
		{"healthcheck", 0, ""},
		{"healthcheck " + i.URL + "/nowhere", 69, "404"},
	})

	var u fields
	i.Run(t, "user", "create", "alice", "--if-not-exists", "--json").Decode(t, &u)
	if u.Created || u.User != "alice" || u.Token != "" {
		t.Errorf("user create --if-not-exists --json wrote %+v, want created false and no token", u)
	}
	i.Run(t, "user", "show", "alice", "--json").Decode(t, &u)
	if u.State != "active" || !slices.Equal(u.Keys, []string{"ed25519", "rsa"}) {
		t.Errorf("user show --json wrote %+v, want an active user with both keys", u)
	}
	var list struct{ Users []fields }
	i.Run(t, "user", "list", "--json").Decode(t, &list)
	if len(list.Users) != 2 || list.Users[0].User != "alice" || list.Users[1].User != "bob" {
		t.Errorf("user list --json wrote %+v, want alice and bob", list)
	}

	// A token works at once. After it is revoked it no longer works.
	var token struct {
		ID, Token string
		Scopes    []string
	}
	i.Run(t, "user", "token", "create", "alice", "--scope", "read", "--json").Decode(t, &token)
	alice := &enginetest.User{Home: i, Name: "alice", Token: token.Token}
	status := func() int { return alice.Ask(t, http.MethodGet, "/api/feed?feed=main", nil).Status }
	if got := status(); got != http.StatusOK || !slices.Equal(token.Scopes, []string{"read"}) {
		t.Errorf("a new token with scopes %q is answered %d, want 200", token.Scopes, got)
	}
	if got := alice.Try(t, "CreateNote", map[string]any{"content": "hello"}).Status; got != http.StatusForbidden {
		t.Errorf("a dispatch with scope read is answered %d, want 403", got)
	}
	var tokens struct{ Tokens []struct{ ID string } }
	listed := i.Run(t, "user", "token", "list", "alice", "--json")
	listed.Decode(t, &tokens)
	if len(tokens.Tokens) != 2 || strings.Contains(listed.Stdout, token.Token) {
		t.Errorf("user token list --json wrote %s, want two tokens and no secret", listed.Stdout)
	}
	runAll(t, i, []command{{"user token revoke alice " + token.ID + " --yes", 0, ""}})
	auditOfAlice(t, i)
	if got := status(); got != http.StatusUnauthorized {
		t.Errorf("a revoked token is answered %d, want 401", got)
	}
	suspendAndUnsuspend(t, i)
}

// user audit lists the dispatched actions. With --json it writes one JSON record a line.
func auditOfAlice(t *testing.T, i *enginetest.Instance) {
	var made struct{ Token string }
	i.Run(t, "user", "token", "create", "alice", "--name", "phone", "--json").Decode(t, &made)
	alice := &enginetest.User{Home: i, Name: "alice", Token: made.Token}
	alice.Do(t, "CreateNote", map[string]any{"content": "hello"})
	type record struct {
		TokenName string `json:"token_name"`
		Action    string
		Outcome   string
		Times     int
		Params    struct{ Content struct{ Bytes int } }
	}
	var list struct{ Audit []record }
	i.Run(t, "user", "audit", "alice", "--json", "--since", "1h").Decode(t, &list)
	want := record{TokenName: "phone", Action: "CreateNote", Outcome: "ok", Times: 1}
	want.Params.Content.Bytes = len("hello")
	if len(list.Audit) != 1 || list.Audit[0] != want {
		t.Errorf("user audit --json wrote %+v, want %+v", list.Audit, want)
	}
	var line record
	if i.Run(t, "user", "audit", "alice", "--json=lines", "--action", "CreateNote", "-n", "1").Decode(t, &line); line != want {
		t.Errorf("user audit --json=lines wrote %+v, want %+v", line, want)
	}
	runAll(t, i, []command{
		{"user audit alice --outcome blocked", 0, ""},
		{"user audit alice --action Explode", 64, "not one of"},
		{"user audit alice --limit 0", 64, "--limit"},
		{"user audit alice --since yesterday", 64, "--since"},
		{"user audit nobody_here", 67, "no user"},
	})
}

// While a user is suspended, the engine refuses the user's tokens and addresses. They work again
// after the suspension.
func suspendAndUnsuspend(t *testing.T, i *enginetest.Instance) {
	u := i.CreateUser(t, "mallory")
	type answers struct{ token, actor, outbox int }
	ask := func() answers {
		return answers{u.Ask(t, http.MethodGet, "/api/feed", nil).Status, enginetest.Fetch(t, u.ID).Status, enginetest.Fetch(t, u.ID+"/outbox").Status}
	}
	want := func(what string, want answers) {
		t.Helper()
		enginetest.Eventually(t, fmt.Sprintf("the %s user is answered %+v", what, want), func() bool { return ask() == want }) // the engine may need a second to notice the change
	}
	want("active", answers{200, 200, 200})
	runAll(t, i, []command{
		{"user unsuspend mallory", 66, "not suspended"},
		{"user suspend nobody_here", 67, "no user"},
		{"user suspend Mallory", 65, "not a username"},
	})
	var done struct{ User, State string }
	i.Run(t, "user", "suspend", "mallory", "--json").Decode(t, &done)
	if done.User != "mallory" || done.State != "suspended" {
		t.Errorf("user suspend --json wrote %+v", done)
	}
	want("suspended", answers{401, 404, 404})
	runAll(t, i, []command{
		{"user suspend mallory", 73, "already suspended"},
		{"user token create mallory", 67, "is suspended"},
		{"user unsuspend mallory", 0, ""},
	})
	want("unsuspended", answers{200, 200, 200})
}

// Several commands create the same user at once. One succeeds and gets a token.
func createsAtOnce(t *testing.T, i *enginetest.Instance) {
	const several = 4
	made := make(chan enginetest.Ran, several)
	t.Run("together", func(t *testing.T) {
		for n := range several {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				made <- i.Run(t, "user", "create", "wanted", "--token", "--json")
			})
		}
	})
	close(made)
	var codes []int
	for r := range made {
		codes = append(codes, r.Code)
	}
	slices.Sort(codes)
	if want := []int{0, 73, 73, 73}; !slices.Equal(codes, want) {
		t.Errorf("the creates ended with %v, want %v", codes, want)
	}
}

// A user create is killed at any moment. The next user create finishes it.
func createThatIsKilled(t *testing.T, i *enginetest.Instance) {
	began := time.Now()
	i.CreateUser(t, "whole")
	whole := time.Since(began)
	const parts = 8
	for n := range parts {
		name := fmt.Sprint("victim", n)
		i.RunUntil(t, whole*time.Duration(n+1)/parts, "user", "create", name)
		again := i.Run(t, "user", "create", name)
		if again.Code != 0 && again.Code != 73 {
			t.Errorf("user create after it was killed at %d/%d ended with %d: %s", n+1, parts, again.Code, again.Stderr)
			continue
		}
		var u fields
		i.Run(t, "user", "show", name, "--json").Decode(t, &u)
		if u.State != "active" || !slices.Equal(u.Keys, []string{"ed25519", "rsa"}) || u.SchemaVersion < 1 {
			t.Errorf("after user create was killed at %d/%d and run again there is %+v, want a whole user", n+1, parts, u)
		}
		if got := enginetest.Fetch(t, u.Actor).Status; got != http.StatusOK {
			t.Errorf("the actor of %s is answered %d, want 200", name, got)
		}
		var token struct{ Token string }
		i.Run(t, "user", "token", "create", name, "--json").Decode(t, &token)
		healed := &enginetest.User{Home: i, Name: name, Token: token.Token}
		healed.Do(t, "CreateNote", map[string]any{"content": "I am here"})
	}
}

func actorFetch(t *testing.T, i, other *enginetest.Instance) {
	remote := other.CreateUser(t, "carol")
	nonsense := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/ill":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/activity+json")
			_, _ = w.Write([]byte(`{"no":`)) // the engine may have hung up
		}
	}))
	defer nonsense.Close()
	policy := filepath.Join(i.DataDir, "registry")
	if err := os.MkdirAll(policy, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(policy, "server.json"), []byte(`{"blocked_domains":["blocked.example"]}`), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, resource := range []string{remote.ID, remote.Handle} {
		got := i.Run(t, "actor", "fetch", resource, "--json")
		var a struct {
			ID, Inbox, Handle string
			Actor             json.RawMessage
			Keys              []struct{ Type string }
			HTTP              *struct {
				Status    int
				Signature string
			}
			FromCache bool `json:"from_cache"`
		}
		if got.Code != 0 {
			t.Errorf("actor fetch %s ended with %d: %s", resource, got.Code, got.Stderr)
			continue
		}
		got.Decode(t, &a)
		if a.ID != remote.ID || a.Inbox != remote.ID+"/inbox" || len(a.Keys) != 2 || len(a.Actor) == 0 || a.FromCache == (a.HTTP != nil) {
			t.Errorf("actor fetch %s --json wrote %s", resource, got.Stdout)
		}
	}
	var refreshed struct{ Handle string }
	i.Run(t, "actor", "fetch", remote.ID, "--refresh", "--json").Decode(t, &refreshed)
	if refreshed.Handle != remote.Handle {
		t.Errorf("handle after a refresh by id is %q, want %q, which WebFinger confirmed", refreshed.Handle, remote.Handle)
	}
	raw := i.Run(t, "actor", "fetch", remote.ID, "--refresh", "--raw")
	if want := string(enginetest.Fetch(t, remote.ID).Body); raw.Stdout != want {
		t.Errorf("actor fetch --raw wrote %q, want the bytes served, %q", raw.Stdout, want)
	}
	runAll(t, i, []command{
		{"actor fetch " + remote.ID + " --cached", 0, ""},
		{"actor fetch " + remote.ID + " --signed-as alice --refresh", 0, ""},
		{"actor fetch " + remote.ID + " --unsigned --refresh", 0, ""},
		{"actor fetch not-a-handle", 65, ""},
		{"actor fetch " + other.URL + "/users/nobody_here", 66, ""},
		{"actor fetch " + nonsense.URL + "/gone", 66, ""},
		{"actor fetch " + remote.ID + " --signed-as nobody_here", 67, ""},
		{"actor fetch @bob@no-such-host.invalid", 68, ""},
		{"actor fetch http://127.0.0.1:1/users/bob", 69, ""},
		{"actor fetch " + nonsense.URL + "/ill", 69, ""},
		{"actor fetch " + nonsense.URL + "/actor", 76, ""},
		{"actor fetch http://10.1.2.3/users/bob", 77, ""},
		{"actor fetch https://blocked.example/users/bob", 77, ""},
	})
}

func refusalsOfServe(t *testing.T, i *enginetest.Instance) {
	taken := strings.TrimPrefix(i.URL, "http://")
	runAll(t, i, []command{
		{"serve --listen " + taken + " --admin-listen 127.0.0.1:0", 73, "the address " + taken + " is taken"},
		{"serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0", 73, "another 'lightweb serve' runs"},
		{"serve --listen nowhere", 78, "listen"},
		{"user list --database-url postgres://nobody@127.0.0.1:1/", 69, "database"},
		{"serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 --database-url postgres://nobody@127.0.0.1:1/", 69, "database"},
	})
	i.Stop(t)
	runAll(t, i, []command{{"healthcheck", 69, "does not answer"}})

	// serve refuses a policy file that it cannot parse. It does not treat such a file as
	// empty.
	policy := filepath.Join(i.DataDir, "registry", "server.json")
	if err := os.WriteFile(policy, []byte(`{"blocked_domains":["blocked.example"`), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none.pem")
	certificate := filepath.Join(t.TempDir(), "lightweb.toml")
	if err := os.WriteFile(certificate, []byte("[tls]\ncert = '"+none+"'\nkey = '"+none+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "lightweb.toml")
	if err := os.WriteFile(secret, []byte("[oidc]\nissuer = 'https://id.example'\nclient_id = 'x'\nclient_secret_file = '"+none+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const serve = "serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0"
	runAll(t, i, []command{{serve, 78, "read " + policy}})
	if err := os.Remove(policy); err != nil {
		t.Fatal(err)
	}
	runAll(t, i, []command{
		{serve + " --config " + certificate, 78, "tls.cert"},
		{"config check --config " + certificate, 78, "tls.cert"},
		{serve + " --config " + secret, 78, "oidc.client_secret_file"},
		{"config check --config " + secret, 78, "oidc.client_secret_file"},
		{"user list --data-dir /dev/null/x", 78, "/dev/null"},
	})
}
