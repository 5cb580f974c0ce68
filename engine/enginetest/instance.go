package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/server/apitest"
)

// Instance is an engine with its own data directory, ports and PostgreSQL. Its data remain when
// its process ends.
type Instance struct {
	URL     string // the public origin
	DataDir string

	listen, admin string
	env           []string
	resolv        string   // the resolv.conf file of its serving processes; empty for the system's file
	process       *process // nil if no process runs
	logs          []*journal
	rows          *rows // nil until a test asks for rows

	describing sync.Mutex
	// described is the description of the client API. It is zero until a test makes a request to
	// that API.
	described apitest.Description
}

// Start makes an instance and waits until it serves. Settings are environment variables, such as
// LIGHTWEB_LOG_LEVEL=info. When the test ends, the instance is stopped. Its log is shown if the
// test has failed.
func Start(t testing.TB, settings ...string) *Instance {
	t.Helper()
	return start(t, 1, settings)[0]
}

// StartTwo makes two instances in parallel.
func StartTwo(t testing.TB, settings ...string) (*Instance, *Instance) {
	t.Helper()
	two := start(t, 2, settings)
	return two[0], two[1]
}

func start(t testing.TB, n int, settings []string) []*Instance {
	t.Helper()
	all := make([]*Instance, n)
	for n := range all {
		all[n] = Make(t, settings...)
		lendKey(t, all[n].DataDir)
		all[n].launch(t)
	}
	for _, i := range all {
		i.await(t)
	}
	return all
}

// Make makes an instance without starting a process that serves it.
func Make(t testing.TB, settings ...string) *Instance {
	t.Helper()
	dir := Dir(t)
	furnish(t, dir)
	return MakeIn(t, dir, settings...)
}

// MakeIn does the same as Make, with an existing data directory.
func MakeIn(t testing.TB, dir string, settings ...string) *Instance {
	t.Helper()
	i := &Instance{DataDir: dir, listen: freeAddress(t), admin: freeAddress(t)}
	i.URL = "http://" + i.listen
	i.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LIGHTWEB_PG_BIN=" + os.Getenv("LIGHTWEB_PG_BIN"),
		"LIGHTWEB_DATA_DIR=" + i.DataDir, "LIGHTWEB_PUBLIC_URL=" + i.URL, "LIGHTWEB_LISTEN=" + i.listen, "LIGHTWEB_ADMIN_LISTEN=" + i.admin,
		"LIGHTWEB_FEDERATION_ALLOW_HTTP=true", "LIGHTWEB_FEDERATION_ALLOW_ADDRESSES=127.0.0.0/8",
		"LIGHTWEB_LIMITS_INBOX_RATE=off", "LIGHTWEB_LIMITS_KEY_FETCH_RATE=off", // all peers of a test share one address
		"LIGHTWEB_LOG_LEVEL=debug", "LIGHTWEB_LOG_FORMAT=json",
	}, settings...)
	t.Cleanup(func() { i.close(t) })
	return i
}

// Start serves the instance again after Stop or Kill, and waits until it is ready.
func (i *Instance) Start(t testing.TB) {
	t.Helper()
	i.launch(t)
	i.await(t)
}

func (i *Instance) launch(t testing.TB) {
	t.Helper()
	serve := exec.Command(Binary(t), "serve")
	dieWithParent(serve)
	if i.resolv != "" {
		serve = resolving(i.resolv, Binary(t), "serve")
	}
	p, err := startProcess(serve, i.env)
	if err != nil {
		t.Fatal(err)
	}
	i.process = p
	i.logs = append(i.logs, p.log)
}

// await waits until the process is ready. It skips the test if the process reports that PostgreSQL
// is missing.
func (i *Instance) await(t testing.TB) {
	t.Helper()
	p := i.process
	err := p.await()
	if err == nil {
		return
	}
	p.end(syscall.SIGTERM)
	i.process = nil
	if exit, ok := errors.AsType[*exitError](err); ok && exit.code == 69 {
		Skip(t, "no PostgreSQL to test with:\n"+p.log.String())
	}
	t.Fatalf("start the engine: %v\n%s", err, p.log)
}

// Stop tells the process to end. It fails the test unless the exit code is 0, and PostgreSQL and
// Redis have ended.
func (i *Instance) Stop(t testing.TB) {
	t.Helper()
	i.detach(t)
	if code := i.process.end(syscall.SIGTERM); code != 0 {
		t.Errorf("the engine ended with exit code %d after SIGTERM, want 0", code)
	}
	i.process = nil
	if i.Postmaster() != 0 {
		t.Errorf("the engine left its PostgreSQL behind")
	}
	for _, role := range roles {
		if pid := i.Redis(role); pid != 0 {
			t.Errorf("the engine left its Redis of %s behind, process %d", role, pid)
		}
	}
}

// StopWhile tells the process to end, and then runs meanwhile(). It returns the exit code.
func (i *Instance) StopWhile(t testing.TB, meanwhile func()) int {
	t.Helper()
	i.detach(t)
	if err := i.process.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	code := i.process.end(syscall.Signal(0))
	i.process = nil
	return code
}

// Kill ends the process by SIGKILL. Its PostgreSQL continues to run.
func (i *Instance) Kill() {
	i.process.end(syscall.SIGKILL)
	i.process = nil
}

// HangUp sends SIGHUP, and waits until the engine's response to the signal is in the log. A second
// call for the same process does not wait, because the first response is already in the log.
func (i *Instance) HangUp(t testing.TB) {
	t.Helper()
	if err := i.process.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "an answer to SIGHUP", func() bool { return i.process.log.tells("nothing to be read again") })
}

// Running reports whether the process still runs.
func (i *Instance) Running() bool {
	select {
	case <-i.process.ended:
		return false
	default:
		return true
	}
}

// Log returns what the processes of the instance have logged so far.
func (i *Instance) Log() string {
	var all strings.Builder
	for _, log := range i.logs {
		all.WriteString(log.String())
	}
	return all.String()
}

// Metrics returns the page of metrics of the running process.
func (i *Instance) Metrics(t testing.TB) string {
	t.Helper()
	return string(ask(t, http.MethodGet, "http://"+i.admin+"/metrics", nil, nil).Body)
}

// Ready returns the status of the running process's answer to /readyz.
func (i *Instance) Ready(t testing.TB) int {
	t.Helper()
	return ask(t, http.MethodGet, "http://"+i.admin+"/readyz", nil, nil).Status
}

// Metric returns the value of a metric of the process. The parameter name is the metric's name and
// labels as the page of metrics shows them. If the page does not show the metric, the value is 0.
func (i *Instance) Metric(t testing.TB, name string) float64 {
	t.Helper()
	for line := range strings.Lines(i.Metrics(t)) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// Set changes a setting for the next start.
func (i *Instance) Set(setting string) { i.env = append(i.env, setting) }

// Run runs a command of the instance: lightweb with these arguments.
func (i *Instance) Run(t testing.TB, args ...string) Ran {
	t.Helper()
	return run(t, i.env, args...)
}

// close stops everything when the test ends, even if the test has failed.
func (i *Instance) close(t testing.TB) {
	t.Helper()
	switch {
	case i.process == nil:
	case i.Running():
		i.Stop(t)
	default:
		t.Errorf("the engine ended by itself, with exit code %d", i.process.cmd.ProcessState.ExitCode())
	}
	i.detach(t)
	if i.Postmaster() != 0 { // it still runs if the engine's process was killed
		i.attach(t)
		i.detach(t)
	}
	if i.Postmaster() != 0 {
		t.Errorf("PostgreSQL of %s was left running", i.DataDir)
	}
	i.endRedis(t)
	for n, log := range i.logs {
		if t.Failed() {
			t.Logf("log of %s, process %d:\n%s", i.URL, n+1, log)
		}
		log.close(t)
	}
}

// Postmaster returns the process ID of the instance's PostgreSQL, or 0 while it does not run.
func (i *Instance) Postmaster() int {
	b, err := os.ReadFile(filepath.Join(i.DataDir, "pg", "postmaster.pid"))
	if err != nil {
		return 0
	}
	n := slices.Index(b, '\n')
	pid, err := strconv.Atoi(string(b[:max(n, 0)]))
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// given stores the addresses that freeAddress has returned, because a process may not listen yet
// at its address.
var given sync.Map

// freeAddress returns a free loopback address, a different one at each call. Its port is below the
// range for outgoing connections. So no outgoing connection can take the port while a process
// restarts.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if _, before := given.LoadOrStore(address, true); before {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no free port was found")
	return ""
}

// Describe returns the instance's description of its client API. It is empty if the instance does
// not answer.
func (i *Instance) Describe(t testing.TB) apitest.Description {
	t.Helper()
	i.describing.Lock()
	defer i.describing.Unlock()
	if i.described.Paths == nil {
		if a := ask(t, http.MethodGet, i.URL+"/api/openapi.json", nil, http.Header{}); a.Status == http.StatusOK {
			i.described = apitest.Read(t, a.Body)
		}
	}
	return i.described
}
