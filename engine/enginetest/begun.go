package enginetest

import (
	"os/exec"
	"syscall"
	"testing"
)

// Begun is a command of an instance that runs until it is interrupted.
type Begun struct {
	t         testing.TB
	cmd       *exec.Cmd
	out, errs *journal
	over      bool
}

// Begin starts a command of the instance. The command is killed when the test ends.
func (i *Instance) Begin(t testing.TB, args ...string) *Begun {
	t.Helper()
	b := &Begun{t: t, cmd: exec.Command(Binary(t), args...)}
	var err error
	for _, j := range []**journal{&b.out, &b.errs} {
		if *j, err = openJournal(); err != nil {
			t.Fatal(err)
		}
	}
	b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = i.env, b.out.file, b.errs.file
	dieWithParent(b.cmd)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !b.over {
			_ = b.cmd.Process.Kill() // fails if the command has ended
			_ = b.cmd.Wait()         // returns an error, because the command was killed
		}
		b.out.close(t)
		b.errs.close(t)
	})
	return b
}

// Stdout returns what the command has written so far.
func (b *Begun) Stdout() string { return b.out.String() }

// Stderr returns what the command has written to its standard error so far.
func (b *Begun) Stderr() string { return b.errs.String() }

// Interrupt ends the command as Ctrl-C does, and returns its result.
func (b *Begun) Interrupt() Ran {
	b.t.Helper()
	if err := b.cmd.Process.Signal(syscall.SIGINT); err != nil {
		b.t.Fatal(err)
	}
	_ = b.cmd.Wait() // the exit code in the result says how the command ended
	b.over = true
	return Ran{b.cmd.ProcessState.ExitCode(), b.Stdout(), b.Stderr()}
}
