package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
)

// The outcomes of a mutant.
const (
	killed     = "killed"
	survived   = "survived"
	timedOut   = "timed out" // counts as killed
	uncompiled = "does not compile"
)

// verdict is the result for a mutant.
type verdict struct {
	mutant
	Outcome string  `json:"outcome"`
	Test    string  `json:"test,omitempty"` // the test that failed first
	Seconds float64 `json:"seconds"`
}

// judge compiles mutants and runs the tests of their packages.
type judge struct {
	root    string // the folder of the module
	dir     string // a temporary folder for the judge alone
	timeout time.Duration
}

func newJudge(ctx context.Context, timeout time.Duration) (*judge, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for mutants: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // if we are root, the server of the tests runs as another user, who must enter the folder
		return nil, fmt.Errorf("make a folder for mutants: %w", err)
	}
	return &judge{root: filepath.Dir(strings.TrimSpace(string(mod))), dir: dir, timeout: timeout}, nil
}

func (j *judge) close() error { return os.RemoveAll(j.dir) }

// judgeMutant compiles a mutant and runs the tests of its package until one fails. The tests
// that nearbyTests returns run first. The tests get a PostgreSQL server and a folder of their
// own, so that tests that are stopped half-way leave nothing to the next mutant.
func (j *judge) judgeMutant(ctx context.Context, p *pkg, m mutant) (v verdict, err error) {
	began := time.Now()
	v = verdict{mutant: m, Outcome: uncompiled}
	defer func() { v.Seconds = time.Since(began).Round(time.Second / 10).Seconds() }()
	if is, err := j.compileMutant(ctx, p, m); err != nil || !is {
		return v, err
	}
	dir := filepath.Join(j.dir, "tests")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return v, fmt.Errorf("make a folder for tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := dbtest.Start(ctx, dir)
	if err != nil {
		return v, fmt.Errorf("start a server for tests: %w", err)
	}
	defer func() { err = errors.Join(err, server.Close(context.WithoutCancel(ctx))) }()
	env := append(os.Environ(), "TMPDIR="+dir, "LIGHTWEB_TEST_POSTGRES="+server.ConnString())

	near := joinNames(p.nearbyTests(m))
	for _, which := range []string{"-test.run=" + near, "-test.skip=" + near} {
		if v.Outcome, v.Test, err = j.runTests(ctx, m, env, which); err != nil || v.Outcome != survived {
			return v, err
		}
	}
	return v, nil
}

// joinNames returns a pattern that matches exactly these tests, or no test when there are none.
func joinNames(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// compileMutant builds the tests of a mutant's package, and reports whether they compile.
func (j *judge) compileMutant(ctx context.Context, p *pkg, m mutant) (bool, error) {
	mutated, overlay := filepath.Join(j.dir, "mutant.go"), filepath.Join(j.dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(j.root, m.path): mutated}})
	if err == nil {
		err = errors.Join(os.WriteFile(mutated, []byte(p.applyMutant(m)), 0o600), os.WriteFile(overlay, replace, 0o600))
	}
	if err != nil {
		return false, fmt.Errorf("write mutant: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", j.binary(), "./"+p.name)
	build.Dir = j.root
	var failed *exec.ExitError
	if err := build.Run(); errors.As(err, &failed) && ctx.Err() == nil {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("compile mutant: %w", err)
	}
	return true, nil
}

func (j *judge) binary() string { return filepath.Join(j.dir, "mutant.test") }

// runTests runs some tests of the compiled mutant until one fails. The last parameter is the
// flag that selects these tests.
func (j *judge) runTests(ctx context.Context, m mutant, env []string, which string) (outcome, test string, err error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	tests := exec.CommandContext(running, j.binary(), "-test.v", "-test.failfast", "-test.paniconexit0", "-test.timeout="+j.timeout.String(), which)
	tests.Dir = filepath.Join(j.root, m.Package)
	tests.Env = env
	tests.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Cancel also kills the processes that the tests have started
	tests.Cancel = func() error { return syscall.Kill(-tests.Process.Pid, syscall.SIGKILL) }
	tests.WaitDelay = 5 * time.Second
	output := &watcher{found: stop}
	tests.Stdout, tests.Stderr = output, output
	err = tests.Run()
	if ctx.Err() != nil {
		return "", "", ctx.Err()
	}
	var failed *exec.ExitError
	switch {
	case err == nil:
		return survived, "", nil
	case output.timedOut:
		return timedOut, output.test, nil
	case output.failed || errors.As(err, &failed):
		return killed, output.test, nil
	}
	return "", "", fmt.Errorf("run tests of %s: %w", m.Package, err)
}

// watcher reads the output of tests, and calls found when the first test has failed.
type watcher struct {
	found    func()
	rest     []byte // the beginning of a line that has not ended
	test     string // the test that failed, or that ran last
	failed   bool
	timedOut bool
}

var (
	begins = regexp.MustCompile(`^=== (?:RUN|CONT) +(\S+)`)
	fails  = regexp.MustCompile(`^ *--- FAIL: (\S+)`)
)

func (w *watcher) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for !w.failed {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			break
		}
		w.rest = rest
		w.read(line)
	}
	return len(b), nil
}

func (w *watcher) read(line []byte) {
	if name := begins.FindSubmatch(line); name != nil {
		w.test = string(name[1])
	}
	w.timedOut = w.timedOut || bytes.HasPrefix(line, []byte("panic: test timed out"))
	if name := fails.FindSubmatch(line); name != nil {
		w.test, w.failed = string(name[1]), true
		w.found()
	}
}
