package enginetest

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// besideThis returns the path of a file. The path is given relative to the folder of this source
// file.
func besideThis(path ...string) string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(file)}, path...)...)
}

// install runs the script "install" in a folder. The folder's path is relative to the folder of
// this source file. The script installs the packages of a program and prints one line, which
// install returns.
func install(folder string) (line string, err error) {
	var out, errs bytes.Buffer
	c := exec.Command(besideThis(folder, "install"))
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, bytes.TrimSpace(errs.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

// Each installation runs once per test process.
var (
	nodePath = sync.OnceValues(func() (node string, err error) {
		line, err := install("fedify")
		if err != nil {
			return "", err
		}
		node, _, ok := strings.Cut(strings.TrimPrefix(line, "node="), " dir=")
		if !ok {
			return "", fmt.Errorf("it printed %q", line)
		}
		return node, nil
	})
	mlsFolder = sync.OnceValues(func() (dir string, err error) { return install("../../docs/examples/client") })
)

// Node returns the path of a Node.js that runs TypeScript. The test is skipped where npm cannot
// install it.
func Node(t testing.TB) string {
	t.Helper()
	return installed(t, "Node.js and Fedify", nodePath)
}

// MLSPackages returns the folder whose node_modules has ts-mls. The test is skipped where npm
// cannot install it.
func MLSPackages(t testing.TB) string {
	t.Helper()
	return installed(t, "ts-mls", mlsFolder)
}

func installed(t testing.TB, what string, find func() (string, error)) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		Skip(t, what+" needs npm: "+err.Error())
	}
	path, err := find()
	if err != nil {
		Skip(t, what+" cannot be installed: "+err.Error())
	}
	return path
}

// startNode starts a program that ends when its standard input is closed. The input is closed when
// the test ends. If the test has failed, the program's standard error is shown.
func startNode(t testing.TB, c *exec.Cmd, what string) (stdin io.Writer, stdout io.Reader, log *journal) {
	t.Helper()
	log, err := openJournal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.close(t) })
	c.Stderr = log.file
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	dieWithParent(c)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // this ends the program
		if err := c.Wait(); err != nil {
			t.Errorf("%s ended with %v", what, err)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", what, log)
		}
	})
	return in, out, log
}
