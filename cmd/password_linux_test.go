package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// control makes an ioctl call on a terminal.
func control(t *testing.T, f *os.File, request uintptr, value unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(value)); errno != 0 {
		t.Fatal(errno)
	}
}

// openTerminal returns the two ends of a new terminal. The test types into person, and the program
// reads from program.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	var number, unlocked int32
	control(t, person, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, person, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	program, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = program.Close(), person.Close() })
	return person, program
}

// hides reports whether a terminal hides typed characters.
func hides(t *testing.T, f *os.File) bool {
	t.Helper()
	var state syscall.Termios
	control(t, f, syscall.TCGETS, unsafe.Pointer(&state))
	return state.Lflag&syscall.ECHO == 0
}

// awaitHidden waits until a terminal hides typed characters.
func awaitHidden(t *testing.T, f *os.File) {
	t.Helper()
	redistest.Eventually(t, "the terminal hides what is typed", func() bool { return hides(t, f) })
}

// endRead ends the read that an interrupted prompt left running on a terminal. That read changes
// the terminal's settings a last time when it ends, and endRead waits for it. Otherwise the change
// could hit another test's terminal that gets the same descriptor.
func endRead(t *testing.T, person, program *os.File) {
	t.Helper()
	var state syscall.Termios
	control(t, program, syscall.TCGETS, unsafe.Pointer(&state))
	state.Lflag &^= syscall.ECHO
	control(t, program, syscall.TCSETS, unsafe.Pointer(&state))
	if _, err := person.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the read ends, and the terminal shows what is typed", func() bool { return !hides(t, program) })
}

// When a signal interrupts a prompt, the terminal shows typed characters again.
func TestAnInterruptedPromptShowsWhatIsTypedAgain(t *testing.T) {
	person, program := openTerminal(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := newApp(nil, program, io.Discard, io.Discard).prompt.askPassword(ctx)
		ended <- err
	}()
	awaitHidden(t, program)
	cancel(&interrupted{syscall.SIGINT})
	var stopped *interrupted
	if err := <-ended; !errors.As(err, &stopped) {
		t.Errorf("the prompt ended with %v, want that it was interrupted", err)
	}
	if hides(t, program) {
		t.Fatal("the terminal still hides what is typed")
	}
	endRead(t, person, program)
}

// When a signal ends the command while an editor has the terminal, the terminal shows typed
// characters again. The editor is killed, and cannot restore the terminal itself.
func TestAnInterruptedEditorLeavesTheTerminalAsItWas(t *testing.T) {
	_, program := openTerminal(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	var running atomic.Bool
	e := editor{env: environment{"EDITOR=stty raw -echo; exec tail -f /dev/null", "PATH=" + os.Getenv("PATH")}, stdin: program, screen: program, running: &running}
	ended := make(chan error, 1)
	go func() {
		_, err := e.editFile(ctx, os.DevNull)
		ended <- err
	}()
	awaitHidden(t, program)
	cancel(&interrupted{syscall.SIGTERM})
	if err := <-ended; err == nil {
		t.Error("the editor ended as if the person had ended it")
	}
	if hides(t, program) {
		t.Error("the terminal still hides what is typed")
	}
}

// A person types the password twice, and the terminal does not show it.
func TestAPasswordIsAskedForUnseen(t *testing.T) {
	for _, tt := range []struct {
		first, second string
		kind          fault.Kind
	}{
		{"correct horse battery", "correct horse battery", 0},
		{"correct horse battery", "correct horse staple", fault.Unprocessable},
	} {
		person, program := openTerminal(t)
		said, says := io.Pipe()
		a := newApp(nil, program, io.Discard, says)
		type answer struct {
			password string
			err      error
		}
		answered := make(chan answer, 1)
		go func() {
			password, err := a.prompt.askPassword(t.Context())
			answered <- answer{password, err}
		}()
		for n, prompt := range []string{"Password: ", "\nAgain: "} {
			got := make([]byte, len(prompt))
			if _, err := io.ReadFull(said, got); err != nil || string(got) != prompt {
				t.Fatalf("the prompt is %q, %v, want %q", got, err, prompt)
			}
			awaitHidden(t, program)
			if _, err := person.WriteString([]string{tt.first, tt.second}[n] + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(said, make([]byte, 1)); err != nil { // the line break after the last answer
			t.Fatal(err)
		}
		got := <-answered
		if tt.kind == 0 && (got.err != nil || got.password != tt.first) || tt.kind != 0 && fault.KindOf(got.err) != tt.kind {
			t.Errorf("the answer is %q, %v", got.password, got.err)
		}
		program.Close()
		shown, _ := io.ReadAll(person) // returns an error once the other end is closed
		if strings.Contains(string(shown), "horse") {
			t.Errorf("the terminal showed %q", shown)
		}
	}
}
