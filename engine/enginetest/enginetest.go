// Package enginetest runs real engines for tests: processes of the real binary, each with a
// PostgreSQL of its own, the peer made with Fedify and devices made with ts-mls. A test looks at
// them from outside alone: command line, HTTP and database rows.
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

	// The test cache does not know the program that the go command builds for us; imported here,
	// its source makes a cached result stale when it changes.
	_ "github.com/lightweb/lightweb/cmd"
	"github.com/lightweb/lightweb/db/dbtest"
)

// folder is where everything of a test run lies; every user can pass through it, as the one
// PostgreSQL runs as must.
var folder string

// Main runs a package's tests and removes what they made. Every package that uses enginetest has
// `func TestMain(m *testing.M) { enginetest.Main(m) }`.
func Main(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp(dbtest.TempDir(), "lw-"); err == nil {
		err = os.Chmod(folder, 0o711) // MkdirTemp makes it 0700
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

// runMoreAtOnce runs two tests for each processor at once, unless -parallel says how many: engines
// wait for each other more than they compute.
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
	build := exec.Command("go", "build", "-o", path, "github.com/lightweb/lightweb")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, bytes.TrimSpace(out))
	}
	return path, nil
})

// Binary builds lightweb, once per test process, and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Dir makes a folder that every user can pass through. It is removed when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	Binary(t) // and with it the folder
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

// patience is how long anything may take that other processes are to bring about: what fails they
// try again every minute at the latest.
const patience = 2 * time.Minute

// Eventually waits for what other processes are to bring about.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-limit.C:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}

// Skip ends the test where this machine lacks something, and fails it where nothing may be lacking.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("LIGHTWEB_TEST_ALL") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}
