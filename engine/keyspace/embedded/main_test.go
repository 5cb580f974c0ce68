package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// holdVariable names an environment variable that holds a data directory. If the variable is set,
// this test binary only runs the Redis of that directory.
const holdVariable = "LIGHTWEB_TEST_HOLD"

// base is the parent directory of all data directories of a test run. Every user can enter it.
var base string

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		os.Exit(hold(dir))
	}
	var err error
	if base, err = os.MkdirTemp("", "lw-"); err == nil {
		err = os.Chmod(base, 0o711)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(base) // if this fails, files remain in the temporary directory
		os.Exit(code)
	}))
}

// hold opens Redis and prints its URL. When the standard input ends, it closes Redis.
func hold(dir string) int {
	r, err := Open(context.Background(), Config{Dir: dir, EventsMemory: 64 << 20, Host: os.Getenv(binVariable) == "none"})
	if err == nil {
		fmt.Println(r.EventsURL())
		_, _ = io.Copy(io.Discard, os.Stdin) // it does not matter how the input ends
		err = r.Close(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// holder is another process that runs a Redis.
type holder struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
}

func startHolder(t *testing.T, dir string, env ...string) *holder {
	t.Helper()
	h := &holder{t: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(append(os.Environ(), holdVariable+"="+dir), env...)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.cmd.Stderr = os.Stderr
	stdin, err := h.cmd.StdinPipe()
	must(t, err)
	stdout, err := h.cmd.StdoutPipe()
	must(t, err)
	h.stdin = stdin
	must(t, h.cmd.Start())
	t.Cleanup(h.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	h.url = strings.TrimSpace(line)
	if !strings.Contains(h.url, "://") {
		t.Fatalf("the holder said %q", h.url)
	}
	return h
}

// leaveServers lets the process close its Redis. It waits until the process has ended.
func (h *holder) leaveServers() {
	h.t.Helper()
	_ = h.stdin.Close() // the process may have died
	if err := h.cmd.Wait(); err != nil {
		h.t.Errorf("the holder ended with %v", err)
	}
}

// kill kills the process group of the process.
func (h *holder) kill() {
	if h.cmd.ProcessState == nil {
		_ = syscall.Kill(-h.cmd.Process.Pid, syscall.SIGKILL) // the process may have ended already
		_ = h.cmd.Wait()                                      // the error says that the process was killed
	}
}

// testDir returns a new data directory. If a server still runs in it at the end, the test fails.
func testDir(t *testing.T, name string) string {
	t.Helper()
	if i, err := findProgram(t.Context()); err != nil || i.path == "" {
		if os.Getenv("LIGHTWEB_TEST_ALL") == "1" {
			t.Fatal("there is no Redis server", err)
		}
		t.Skip("needs a Redis or Valkey server")
	}
	parent, err := os.MkdirTemp(base, "")
	must(t, err)
	must(t, os.Chmod(parent, 0o711))
	dir := filepath.Join(parent, name)
	t.Cleanup(func() {
		for _, role := range []string{"cache", "events"} {
			s := &server{dir: filepath.Join(dir, "redis", role)}
			if s.redis = new(Redis); s.isAlive() {
				pid, _ := s.findProcess()
				t.Errorf("the server of %s was left running", role)
				_ = syscall.Kill(pid, syscall.SIGKILL) // the server was alive just now, so this works
			}
		}
	})
	return dir
}

// mustOpen opens the Redis of dir for this process.
func mustOpen(t *testing.T, dir string, log *slog.Logger) *Redis {
	t.Helper()
	r, err := Open(t.Context(), Config{Dir: dir, EventsMemory: 64 << 20, Log: log})
	must(t, err)
	t.Cleanup(func() { mustClose(t, r) })
	return r
}

func mustClose(t *testing.T, r *Redis) {
	t.Helper()
	if err := r.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// mustAnswer sends a command to a server and checks the answer.
func mustAnswer(t *testing.T, s *server, want string, words ...string) {
	t.Helper()
	if got, err := askServer(t.Context(), s.socket, words...); err != nil || got != want {
		t.Errorf("%s of %s = %q, %v; want %q", strings.Join(words, " "), s.name, got, err, want)
	}
}

// eventually waits until is() returns true. It fails the test if that takes longer than 20 s.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); !is(); {
		select {
		case <-limit:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
