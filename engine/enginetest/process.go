package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a `lightweb serve`. It runs or has ended.
type process struct {
	cmd   *exec.Cmd
	log   *journal
	ended chan struct{} // closed when the process has ended
}

func startProcess(serve *exec.Cmd, env []string) (*process, error) {
	log, err := openJournal()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: serve, log: log, ended: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Stderr = log.file
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.file.Close())
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is in ProcessState
	}()
	return p, nil
}

// await waits until the process answers requests.
func (p *process) await() error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !p.log.tells(`"msg":"ready"`) {
		select {
		case <-look.C:
		case <-p.ended:
			return &exitError{p.cmd.ProcessState.ExitCode()}
		case <-limit.C:
			return errors.New("it was not ready in time")
		}
	}
	return nil
}

// exitError is the error that a process ended before it was ready.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.code) }

// end sends a signal, and waits until the process has ended. After a minute it kills the process.
// It returns the exit code, or -1 if a signal ended the process.
func (p *process) end(s syscall.Signal) int {
	_ = p.cmd.Process.Signal(s) // fails if the process has ended
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-p.ended:
	case <-limit.C:
		_ = p.cmd.Process.Kill() // fails if the process has ended
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// journal is the file that a process writes its standard error to. A pipe would deliver a line
// late. From the file, a test can read every line that the process wrote before it answered a
// request. The file has no name.
type journal struct{ file *os.File }

func openJournal() (*journal, error) {
	f, err := os.CreateTemp("", "log")
	if err != nil {
		return nil, err
	}
	return &journal{f}, os.Remove(f.Name())
}

func (j *journal) tells(words string) bool { return strings.Contains(j.String(), words) }

// String returns the content of the journal so far, or the error if it cannot be read.
func (j *journal) String() string {
	all, err := io.ReadAll(io.NewSectionReader(j.file, 0, math.MaxInt64))
	if err != nil {
		return "the log cannot be read: " + err.Error()
	}
	return string(all)
}

func (j *journal) close(t testing.TB) {
	t.Helper()
	if err := j.file.Close(); err != nil {
		t.Error(err)
	}
}

// Ran is the result of a command.
type Ran struct {
	Code           int
	Stdout, Stderr string
}

// Decode decodes the JSON that the command wrote with --json.
func (r Ran) Decode(t testing.TB, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		t.Fatalf("the command wrote %q, want one JSON document: %v", r.Stdout, err)
	}
}

// run runs a command until it ends.
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

// RunUntil runs a command of the instance. If the command has not ended after the duration in the
// parameter kill, RunUntil kills it.
func (i *Instance) RunUntil(t testing.TB, kill time.Duration, args ...string) {
	t.Helper()
	c := exec.Command(Binary(t), args...)
	c.Env = i.env
	dieWithParent(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(kill, func() { _ = c.Process.Kill() }) // fails if the command has ended
	// The steps of the test after this one must work whether or not the command was killed.
	_ = c.Wait()
	timer.Stop()
}
