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
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// holdVariable names the environment variable with the path of a data directory. If the variable
// is set, this test binary only holds the cluster of that directory.
const holdVariable = "LIGHTWEB_TEST_HOLD"

// base is the parent directory of all data directories of a run. Every user can enter it.
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
		_ = os.RemoveAll(base) // if this fails, only files in the temporary directory are left
		os.Exit(code)
	}))
}

// hold opens the cluster, prints "open", and closes the cluster when the standard input ends. The
// log also goes to the standard output.
func hold(dir string) int {
	c, err := Open(context.Background(), Config{Dir: dir, Log: slog.New(slog.NewTextHandler(os.Stdout, nil))})
	if err == nil {
		fmt.Println("open")
		_, _ = io.Copy(io.Discard, os.Stdin) // a failed read ends the wait, too
		err = c.Close(context.Background())
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// holder runs another process, which holds a cluster.
type holder struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
	said  strings.Builder
}

// startHolder starts a holder in a process group of its own, with additional environment variables.
func startHolder(t *testing.T, dir string, env ...string) *holder {
	t.Helper()
	h := &holder{t: t, cmd: exec.Command(os.Args[0])}
	h.cmd.Env = append(append(os.Environ(), holdVariable+"="+dir), env...)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.cmd.Stderr = os.Stderr
	stdin, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdin, h.out = stdin, bufio.NewReader(stdout)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h.cmd.ProcessState == nil {
			h.signal(syscall.SIGKILL)
			_ = h.cmd.Wait() // returns an error, because the process was killed
		}
	})
	return h
}

// openCluster waits until the holder's process has opened its cluster.
func (h *holder) openCluster() *holder {
	h.t.Helper()
	for {
		line, err := h.out.ReadString('\n')
		if err != nil {
			h.t.Fatalf("the holder did not open: %v\n%s", err, h.said.String())
		}
		if line == "open\n" {
			return h
		}
		h.said.WriteString(line)
	}
}

// leave makes the holder's process close its cluster. It returns the log of the process.
func (h *holder) leave() string {
	h.t.Helper()
	_ = h.stdin.Close() // fails if the process has ended
	rest, err := io.ReadAll(h.out)
	if err != nil {
		h.t.Fatal(err)
	}
	h.said.Write(rest)
	if err := h.cmd.Wait(); err != nil {
		h.t.Errorf("the holder ended with %v\n%s", err, h.said.String())
	}
	return h.said.String()
}

// signal sends s to the process group. The process may have ended.
func (h *holder) signal(s syscall.Signal) { _ = syscall.Kill(-h.cmd.Process.Pid, s) }

// die kills the process with the signal s, and waits until the process has ended.
func (h *holder) die(s syscall.Signal) {
	h.signal(s)
	_ = h.cmd.Wait() // returns the signal as an error
}

// needBinaries skips t if PostgreSQL is not installed.
func needBinaries(t *testing.T) installation {
	t.Helper()
	i, err := findBin(t.Context(), listCandidates(t.Context(), base), 0)
	if err != nil {
		if os.Getenv("LIGHTWEB_TEST_ALL") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs PostgreSQL's server binaries: %v", err)
	}
	return i
}

// testDir returns a new data directory. The test fails if a server still runs in the directory
// when the test ends.
func testDir(t *testing.T, name string) string {
	t.Helper()
	i := needBinaries(t)
	parent, err := os.MkdirTemp(base, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(parent, 0o711); err != nil { // MkdirTemp makes the directory with mode 0700
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range clustersIn(parent) {
			if c.isAlive() {
				t.Errorf("a server was left running in %s", c.dir)
				c.bin = i
				_, err := c.as.Run(context.Background(), c.data, i.path("pg_ctl"), "stop", "-s", "-w", "-m", "immediate", "-D", ".")
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	return filepath.Join(parent, name)
}

// clustersIn returns the clusters in the directories below parent.
func clustersIn(parent string) []*Cluster {
	var all []*Cluster
	entries, _ := os.ReadDir(parent) // without entries, there is nothing to stop
	for _, e := range entries {
		c := &Cluster{}
		if c.choosePlace(context.Background(), filepath.Join(parent, e.Name())) == nil {
			all = append(all, c)
		}
	}
	return all
}

var template = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(base, "template")
	c, err := Open(context.Background(), Config{Dir: dir})
	if err != nil {
		return "", err
	}
	return dir, c.Close(context.Background())
})

// madeDir returns a data directory with a stopped cluster. The cluster is a copy from another
// directory. So every test that opens the copy also shows that a data directory can be moved.
func madeDir(t *testing.T, name string) string {
	t.Helper()
	dir := testDir(t, name)
	from, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// mustOpen opens the cluster of dir for this process.
func mustOpen(t *testing.T, dir string) *Cluster {
	t.Helper()
	c, err := Open(t.Context(), Config{Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, c) })
	return c
}

func mustClose(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// mustAnswer fails t unless the cluster accepts a session.
func mustAnswer(t *testing.T, c *Cluster) {
	t.Helper()
	if v, err := askServer(t.Context(), c.socket); err != nil || v != c.Version() {
		t.Errorf("the server answered %q, %v; want version %q", v, err, c.Version())
	}
}

// serverOf returns the process ID of the server of dir, or 0 if there is none.
func serverOf(t *testing.T, dir string) int {
	t.Helper()
	c := &Cluster{}
	if err := c.choosePlace(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	pid, s := c.findPostmaster()
	if !s.IsAlive() {
		return 0
	}
	return pid
}

// eventually waits up to 20 s until done() returns true. Otherwise it fails the test.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); !done(); {
		select {
		case <-limit:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}
