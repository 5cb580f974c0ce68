package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a `lightweb serve` that runs, or has ended.
type process struct {
	cmd   *exec.Cmd
	log   *journal
	ended chan struct{} // closed when it is over and its log complete
}

func startProcess(serve *exec.Cmd, env []string) (*process, error) {
	p := &process{cmd: serve, log: &journal{ready: make(chan struct{})}, ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stderr = p.log
	p.cmd.WaitDelay = time.Second // should a child of it hold its standard error
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // ProcessState says how it ended
	}()
	return p, nil
}

// await waits until the process answers requests.
func (p *process) await() error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-p.log.ready:
		return nil
	case <-p.ended:
		return &exitError{p.cmd.ProcessState.ExitCode()}
	case <-limit.C:
		return errors.New("it was not ready in time")
	}
}

// exitError says that a process ended instead of becoming ready.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.code) }

// end sends a signal and waits for the end of the process; after a minute it is killed. It returns the exit code, -1
// for a process that a signal killed.
func (p *process) end(s syscall.Signal) int {
	_ = p.cmd.Process.Signal(s) // it may be over
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		_ = p.cmd.Process.Kill() // it may be over
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// journal keeps what a process writes to its log, and notices when it is ready.
type journal struct {
	ready chan struct{}

	mu      sync.Mutex
	all     bytes.Buffer
	partial []byte // of a line
	told    bool
}

// Write is io.Writer's.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all.Write(b)
	j.partial = append(j.partial, b...)
	for {
		line, rest, whole := bytes.Cut(j.partial, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		j.partial = rest
		var entry struct{ Msg string }
		if !j.told && json.Unmarshal(line, &entry) == nil && entry.Msg == "ready" {
			j.told = true
			close(j.ready)
		}
	}
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.String()
}

// Ran is how a command ended.
type Ran struct {
	Code           int
	Stdout, Stderr string
}

// Decode reads what the command wrote with --json.
func (r Ran) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		t.Fatalf("the command wrote %q, want one JSON document: %v", r.Stdout, err)
	}
}

// run runs a command to its end.
func run(t testing.TB, env []string, args ...string) Ran {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(Binary(t), args...)
	c.Env, c.Stdout, c.Stderr = env, &out, &errs
	dieWithParent(c)
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// RunUntil runs a command of the instance that is killed after a while, unless it is over by then.
func (i *Instance) RunUntil(t testing.TB, kill time.Duration, args ...string) {
	t.Helper()
	c := exec.Command(Binary(t), args...)
	c.Env = i.env
	dieWithParent(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(kill, func() { _ = c.Process.Kill() }) // it may be over
	_ = c.Wait()                                                   // killed or not: what follows must work
	timer.Stop()
}
