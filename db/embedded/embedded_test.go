package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

func TestFirstOpenMakesAClusterThatAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, dir string }{
		{"in a directory still to be made", "new/data"},
		{"in a path with space, quotes and what a shell would run", "it's a \"data\" $(touch /) `dir`"},
		{"in a path with a comma and a backslash", `a,b\c`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := testDir(t, tt.dir)
			c := mustOpen(t, dir)
			mustAnswer(t, c)
			if got, want := c.ConnString(), " port=5432 user=lightweb sslmode=disable"; !strings.HasPrefix(got, "host='/") || !strings.HasSuffix(got, want) {
				t.Errorf("ConnString = %s, want it to end in %s", got, want)
			}
			mustClose(t, c)
			if pid := serverOf(t, dir); pid != 0 {
				t.Errorf("server %d runs after Close", pid)
			}
			if _, err := os.Stat(socketPath(c.socket)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

func TestEveryPathFitsASocketAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, strings.Repeat("long", 40))
	c := mustOpen(t, dir)
	if len(socketPath(c.socket)) > 103 {
		t.Errorf("the socket's path %s is too long", c.socket)
	}
	mustAnswer(t, c)
	h := startHolder(t, dir).openCluster()
	mustClose(t, c)
	h.leave()
	if _, err := os.Stat(c.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was left behind", c.socket)
	}
}

func TestASocketFolderOfSomebodyElseIsRefused(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, strings.Repeat("taken", 40))
	socket := daemon.SocketDir(dir, socketName)
	if err := os.Symlink(base, socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(socket) }) // removes the link that this test made
	_, err := Open(t.Context(), Config{Dir: dir})
	if fault.KindOf(err) != fault.Config || !strings.Contains(fault.Hint(err), socket) {
		t.Errorf("Open = %v, hint %q; want a Config fault with a hint at %s", err, fault.Hint(err), socket)
	}
}

func TestTheLastProcessOutStopsTheCluster(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	first := startHolder(t, dir).openCluster()
	server := serverOf(t, dir)
	c := mustOpen(t, dir)
	if said := first.leave(); !strings.Contains(said, "started") || strings.Contains(said, "stopped") {
		t.Errorf("the first process said %q, want it to start the cluster and to leave it running", said)
	}
	mustAnswer(t, c)
	if pid := serverOf(t, dir); pid != server || pid == 0 {
		t.Errorf("server is %d, want %d as before", pid, server)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Close(ended); err != nil {
		t.Errorf("Close with a context that has ended: %v", err)
	}
	if pid := serverOf(t, dir); pid != 0 {
		t.Errorf("server %d outlived its last user", pid)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	if err := c.Ensure(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Ensure after Close = %v, want os.ErrClosed", err)
	}
}

// A command beside a running engine runs none of PostgreSQL's programs.
func TestAProcessThatJoinsARunningServerNeedsNoBinaries(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	first := startHolder(t, dir).openCluster()
	startHolder(t, dir, binVariable+"="+base).openCluster().leave()
	first.leave()
}

func TestAnOrphanIsAdoptedAndStopped(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	startHolder(t, dir).openCluster().die(syscall.SIGKILL)
	orphan := serverOf(t, dir)
	if orphan == 0 {
		t.Fatal("the cluster died with its holder")
	}
	c := mustOpen(t, dir)
	mustAnswer(t, c)
	if pid := serverOf(t, dir); pid != orphan {
		t.Errorf("server is %d, want the orphan %d", pid, orphan)
	}
	mustClose(t, c)
	if pid := serverOf(t, dir); pid != 0 {
		t.Errorf("the orphan %d runs after Close", pid)
	}
}

func TestCtrlCDoesNotReachTheCluster(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	starter := startHolder(t, dir).openCluster()
	server := serverOf(t, dir)
	c := mustOpen(t, dir)
	starter.die(syscall.SIGINT)
	mustAnswer(t, c)
	if pid := serverOf(t, dir); pid != server || pid == 0 {
		t.Errorf("server is %d, want %d as before", pid, server)
	}
}

func TestEightColdStartsMakeOneCluster(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	holders := make([]*holder, 8)
	for i := range holders {
		holders[i] = startHolder(t, dir)
	}
	for _, h := range holders {
		h.openCluster()
	}
	var said strings.Builder
	for _, h := range holders {
		said.WriteString(h.leave())
	}
	for _, what := range []string{"initialised", "started", "stopped"} {
		if n := strings.Count(said.String(), "private PostgreSQL "+what); n != 1 {
			t.Errorf("%s %d times, want once:\n%s", what, n, said.String())
		}
	}
}

func TestAClusterHalfMadeByAKilledProcessIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	h := startHolder(t, dir)
	eventually(t, "initdb is at work", func() bool {
		found, err := filepath.Glob(filepath.Join(dir, "pg.new-*", "global", "pg_control"))
		return err == nil && len(found) > 0
	})
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait() // returns an error, because the process was killed
	mustAnswer(t, mustOpen(t, dir))
	eventually(t, "nothing half-made is left", func() bool {
		again := mustOpen(t, dir) // initdb may outlive the killed process and add files; each Open removes them
		defer mustClose(t, again)
		left, err := filepath.Glob(filepath.Join(dir, "pg.new-*"))
		return err == nil && len(left) == 0
	})
}

func TestAnOpenThatIsCalledOffLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		c, err := Open(ctx, Config{Dir: dir})
		if err == nil {
			err = errors.Join(errors.New("it opened"), c.Close(context.Background()))
		}
		done <- err
	}()
	eventually(t, "the start has begun", func() bool {
		st, err := os.Stat(filepath.Join(dir, "pg", "postmaster.pid"))
		return err == nil && st.Size() > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "it opened") {
		t.Errorf("Open = %v, want context.Canceled", err)
	}
	if pid := serverOf(t, dir); pid != 0 {
		t.Errorf("server %d was left running", pid)
	}
}

func TestWaitingForAnotherProcessObeysItsContext(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	c := &Cluster{}
	if err := c.choosePlace(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	busy, err := c.takeLock(t.Context(), "start.lock", syscall.LOCK_EX)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Config{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) || fault.KindOf(err) != fault.Busy {
		t.Errorf("Open = %v, want a Busy fault and context.DeadlineExceeded", err)
	}
}

func TestAKilledServerIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	c := mustOpen(t, dir)
	var log lines
	c.log = slog.New(slog.NewTextHandler(&log, nil))
	kill := func() {
		t.Helper()
		if err := syscall.Kill(serverOf(t, dir), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}

	kill()
	others := make(chan error)
	other := mustOpen(t, dir) // one of the two clusters starts the server, and the other uses it
	for _, each := range []*Cluster{c, other} {
		go func() { others <- each.Ensure(t.Context()) }()
	}
	for range 2 {
		if err := <-others; err != nil {
			t.Errorf("Ensure: %v", err)
		}
	}
	mustAnswer(t, c)
	server := serverOf(t, dir)
	if err := c.Ensure(t.Context()); err != nil || serverOf(t, dir) != server {
		t.Errorf("Ensure of a server that answers = %v, and server %d became %d", err, server, serverOf(t, dir))
	}
	mustClose(t, other)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { c.Supervise(ctx); close(ended) }()
	kill()
	eventually(t, "the supervisor has started it again", func() bool { return strings.Contains(log.String(), "started") })
	mustAnswer(t, c)
	cancel()
	<-ended
	if n := strings.Count(log.String(), "died"); n != 1 {
		t.Errorf("the death was told %d times, want once:\n%s", n, log.String())
	}

	kill()
	eventually(t, "the server is gone", func() bool { return serverOf(t, dir) == 0 })
	if err := c.Close(t.Context()); err != nil || !strings.Contains(log.String(), "already gone") {
		t.Errorf("Close of a dead server = %v, want a warning in the log:\n%s", err, log.String())
	}
}

func TestAServerIsStartedAgainWhenTheLastOfTheOldOneIsGone(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	c := mustOpen(t, dir)
	session := sessionOf(t, c)
	must(t, syscall.Kill(session, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(session, syscall.SIGKILL) }) // fails if the session has ended, as it should
	must(t, syscall.Kill(serverOf(t, dir), syscall.SIGKILL))
	done := make(chan error, 1)
	go func() { done <- c.Ensure(t.Context()) }()
	eventually(t, "PostgreSQL refuses to start beside a living session", func() bool {
		return strings.Contains(daemon.LastWords(filepath.Join(c.data, logName)), "still in use")
	})
	must(t, syscall.Kill(session, syscall.SIGCONT))
	if err := <-done; err != nil {
		t.Errorf("Ensure: %v", err)
	}
	mustAnswer(t, c)
}

// sessionOf opens a session for the duration of t. It returns the id of the server process that
// serves the session.
func sessionOf(t *testing.T, c *Cluster) int {
	t.Helper()
	conn, err := net.Dial("unix", socketPath(c.socket))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // fails if the server has closed the connection
	_, err = conn.Write(startupMessage())
	must(t, err)
	for {
		var head [5]byte
		_, err := io.ReadFull(conn, head[:])
		must(t, err)
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		_, err = io.ReadFull(conn, body)
		must(t, err)
		if head[0] == 'K' { // the message BackendKeyData
			return int(binary.BigEndian.Uint32(body))
		}
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
