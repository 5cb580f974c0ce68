// Package enginetest runs real engines for tests: processes of the real binary, each with its own
// PostgreSQL. It also runs a peer made with Fedify and devices made with ts-mls. A test examines
// them only from outside: by the command line, by HTTP and by rows of the databases.
package enginetest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	// The go command builds the program in Binary, so the test cache does not know the
	// program's source. This import makes a cached result stale when the source changes.
	_ "github.com/lightweb/lightweb/cmd"
	"github.com/lightweb/lightweb/db/dbtest"
)

// folder contains all files of a test run. Every user can pass through it, because PostgreSQL may
// run as another user than the tests do.
var folder string

// Main runs a package's tests, and removes the files that the tests made. Every package that uses
// enginetest needs `func TestMain(m *testing.M) { enginetest.Main(m) }`.
func Main(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp(dbtest.TempDir(), "lw-"); err == nil {
		err = os.Chmod(folder, 0o711) // MkdirTemp creates it with mode 0700
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make a folder for the tests:", err)
		os.Exit(1)
	}
	if err := runMoreAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, "set -parallel:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, "remove the folder of the tests:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// runMoreAtOnce sets -parallel to two tests for each processor, unless -parallel is already set.
// Engines wait for each other more than they compute, so more tests than processors can run in
// parallel.
func runMoreAtOnce() error {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if set {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}

var binary = sync.OnceValues(func() (string, error) {
	if folder == "" {
		return "", errors.New("TestMain does not call enginetest.Main")
	}
	path := filepath.Join(folder, "lightweb")
	// Without symbols for a debugger, linking takes less time. No test needs them.
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/lightweb/lightweb")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, bytes.TrimSpace(out))
	}
	return path, nil
})

// Binary returns the path of lightweb. It builds lightweb once in each test process.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Dir makes a folder that every user can pass through. The folder is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	Binary(t) // so that the folder exists
	dir, err := os.MkdirTemp(folder, "")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// patience is the longest time that a test waits for an effect of other processes. These processes
// retry failed work at least every minute.
const patience = 2 * time.Minute

// Eventually waits for an effect of other processes: it waits until done() returns true. It fails
// the test if that takes longer than patience.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}

// Skip skips the test because this machine lacks something. If LIGHTWEB_TEST_ALL is set, it fails
// the test instead.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("LIGHTWEB_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
