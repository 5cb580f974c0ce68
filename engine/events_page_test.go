package engine_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// codeBlock matches an example on a page, with the example's language.
var codeBlock = regexp.MustCompile("(?ms)^```(sh|ts)\n(.*?)^```")

// applyRedisAccess gives a user's programs access to the user's streams. It returns the URL of
// Redis with that access.
func applyRedisAccess(t *testing.T, a *enginetest.Instance, server *redistest.Server, user string) string {
	t.Helper()
	var access struct {
		User     string `json:"redis_user"`
		Password string `json:"password"`
	}
	a.Run(t, "user", "redis-acl", user, "--apply", "--json").Decode(t, &access)
	return "redis://" + access.User + ":" + access.Password + "@" + server.Addr
}

// The examples of docs/events.md run, and receive the events of alice's posts.
func TestTheExamplesOfTheEventsPageRun(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice := a.CreateUser(t, "alice")
	env := append(os.Environ(), "API="+a.URL, "TOKEN="+alice.Token, "REDIS="+applyRedisAccess(t, a, server, "alice"))
	blocks := codeBlock.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 4 {
		t.Fatalf("the page has %d examples, want 4", len(blocks))
	}
	for n, block := range blocks {
		program := map[string]string{"sh": "bash", "ts": ""}[block[1]]
		if program == "" {
			program = enginetest.Node(t)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "example."+block[1])
		if block[1] == "ts" {
			file = filepath.Join(dir, "example.mts") // .mts makes it a module
		}
		if err := os.WriteFile(file, []byte(block[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		told := begin(t, dir, env, program, file)
		var posted []string
		enginetest.Eventually(t, "the example is told of a post", func() bool {
			create, _ := alice.Post(t, map[string]any{"content": "hello"})
			posted = append(posted, create)
			out := told()
			for _, id := range posted {
				if strings.Contains(out, id) && strings.Contains(out, "create.sent") {
					return true
				}
			}
			return false
		})
		if t.Failed() {
			t.Errorf("example %d wrote %s", n+1, told())
		}
	}
	enginetest.Eventually(t, "everything is acknowledged in the group", func() bool {
		return strings.HasPrefix(server.Do("XPENDING", "alice:events", "llm")+" ", "0 ")
	})
}

// begin runs an example until the test ends. told() returns the output of the example so far.
func begin(t *testing.T, dir string, env []string, program string, args ...string) (told func() string) {
	t.Helper()
	var out output
	c := exec.Command(program, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, env, &out, &out
	// so that the kill below also ends its child processes
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // the process may have ended already
		_ = c.Wait()                                      // the error says that the process was killed
		if t.Failed() {
			t.Logf("%s wrote:\n%s", args, out.String())
		}
	})
	return out.String
}

// output holds the output of a process so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
