package cmd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite golden output and generated documentation")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lightweb": func() {
		os.Exit(Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	}})
}

// TestScripts runs scripts of commands, as a shell does. In a script, "exits 64 lightweb …" runs a
// command and fails the test unless the exit code is 64.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				want, err := strconv.Atoi(args[0])
				if err != nil {
					ts.Fatalf("exits needs a code: %v", err)
				}
				got := 0
				var e *exec.ExitError
				if err := ts.Exec(args[1], args[2:]...); errors.As(err, &e) {
					got = e.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if got != want {
					ts.Fatalf("exit code %d, want %d", got, want)
				}
			},
		},
	})
}

// execute runs Main with its own environment. It returns the exit code and the texts that Main
// wrote.
func execute(env []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, append(env, "HOME=/home/nobody"), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestEveryCommandTellsWhatItDoesAndWhatItTakes(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		leaf := !c.HasSubCommands()
		if c.Short == "" || c.Long == "" || leaf && c.Example == "" {
			t.Errorf("%s: Short, Long and, without subcommands, Example are wanted", c.CommandPath())
		}
		if c.Args == nil || c.RunE == nil {
			t.Errorf("%s: without Args or RunE cobra takes any words for a success", c.CommandPath())
		}
		if leaf && !strings.Contains(c.Use, "…") {
			if err := c.Args(c, []string{"1", "2", "3", "4", "5"}); err == nil {
				t.Errorf("%s takes any number of arguments", c.CommandPath())
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(newApp(nil, nil, nil, nil)))
}

func TestASignalEndsACommandWithTheShellsCode(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		want   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if err := syscall.Kill(os.Getpid(), tt.signal); err != nil {
					t.Error(err)
				}
				<-r.Context().Done()
			}))
			defer s.Close()
			code, _, stderr := execute(nil, "healthcheck", s.URL, "--json")
			if code != tt.want || !strings.Contains(stderr, `"code":"interrupted"`) {
				t.Errorf("exit %d, %s, want %d and interrupted", code, stderr, tt.want)
			}
		})
	}
}

func TestTheSecondSignalDoesNotWaitForTheCommand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		serving bool
		want    int
	}{{"a server", true, 1}, {"any other command", false, 143}} {
		t.Run(tt.name, func(t *testing.T) {
			a := newApp(nil, nil, nil, nil)
			a.serving.Store(tt.serving)
			signals := make(chan os.Signal, 2)
			signals <- syscall.SIGINT
			signals <- syscall.SIGTERM
			ctx, cancel := context.WithCancelCause(context.Background())
			if code := a.awaitCode(make(chan int), signals, cancel); code != tt.want {
				t.Errorf("await = %d, want %d", code, tt.want)
			}
			if context.Cause(ctx) == nil {
				t.Error("the command was not told to end")
			}
		})
	}
}

func TestTimeThatRanOutIsToBeTriedAgain(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	code, _, stderr := execute(nil, "healthcheck", s.URL, "--timeout", "20ms")
	if want := "error: the time of 20ms ran out\n"; code != 75 || stderr != want {
		t.Errorf("exit %d, %q, want 75, %q", code, stderr, want)
	}
}

func TestAReaderThatHasHadEnoughIsNoFailure(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var stderr bytes.Buffer
	c := exec.Cmd{Path: self, Args: []string{"lightweb", "version"}, Stdout: w, Stderr: &stderr}
	if err := c.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v, %q, want a quiet exit 0", err, stderr.String())
	}
}

func TestAResultThatCannotBeWrittenIsAFailureAndNoBug(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	var stderr bytes.Buffer
	code := Main(context.Background(), []string{"version"}, []string{"HOME=/home/nobody"}, strings.NewReader(""), full, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit %d, %q, want %d and why", code, stderr.String(), exitFailed)
	}
}

func TestHealthcheckTellsReadyFromNot(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			http.Error(w, "wrong path", http.StatusNotFound)
			return
		}
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = w.Write([]byte("database\x1b[31m away\nmore")) // fails if the client has left
		}
	}))
	defer s.Close()
	address := strings.TrimPrefix(s.URL, "http://")
	env := []string{"LIGHTWEB_ADMIN_LISTEN=" + address}
	if code, out, _ := execute(env, "healthcheck", "auto", "--json"); code != 0 || out != `{"ready":true,"url":"`+s.URL+`/readyz"}`+"\n" {
		t.Errorf("exit %d, %s, want 0 and ready", code, out)
	}
	status = http.StatusServiceUnavailable
	code, _, stderr := execute(env, "healthcheck")
	if code != 69 || !strings.Contains(stderr, "answered 503: database�[31m away") || strings.Contains(stderr, "more") {
		t.Errorf("exit %d, %q, want 69 and the first line, harmless", code, stderr)
	}
}

func TestAListenerOnAllAddressesIsAskedOnLoopback(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:9090": "127.0.0.1:9090", ":9090": "127.0.0.1:9090", "0.0.0.0:9090": "127.0.0.1:9090",
		"[::]:9090": "[::1]:9090", "10.0.0.1:9090": "10.0.0.1:9090", "localhost:9090": "127.0.0.1:9090", "admin.invalid:9090": "admin.invalid:9090",
	} {
		if got := reachableAddress(listen); got != want {
			t.Errorf("reachable(%q) = %q, want %q", listen, got, want)
		}
	}
}
