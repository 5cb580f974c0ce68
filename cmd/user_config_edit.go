package cmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// editedConfig is the result of user config edit.
type editedConfig struct {
	User    vocab.Username `json:"user"`
	Changed bool           `json:"changed"`
}

func newUserConfigEdit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "edit NAME",
		Short: "Edit the configuration of a user",
		Long: "edit opens a copy of the config.json of the user NAME in $VISUAL, $EDITOR or vi, also if the\n" +
			"file is broken. It checks the copy before it replaces the file. If the copy has a mistake, edit\n" +
			"shows it and asks whether to edit again. If the answer is no, or there is no terminal, it keeps\n" +
			"the copy, names it, and ends with exit code 65. Exit code 73: somebody else changed the file\n" +
			"meanwhile.",
		Example: "  lightweb user config edit alice\n  EDITOR='code --wait' lightweb user config edit alice",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.editConfig(ctx, user)
		}),
	}
}

// editConfig lets a person edit a copy of the file, and replaces the file if the copy is valid.
// The instance is not open while the person edits, which may take long.
func (a *app) editConfig(ctx context.Context, user vocab.Username) error {
	var before []byte
	err := a.admin(ctx, func(t *admin.Tasks) (err error) {
		before, err = t.Configs.Read(ctx, user)
		return err
	})
	if err != nil {
		return err
	}
	shown := before
	if before == nil {
		if shown, err = registry.ExampleUser(); err != nil {
			return err
		}
	}
	path, err := writeCopy(user, shown)
	if err != nil {
		return err
	}
	answers, editing := bufio.NewReader(endingReader{ctx, a.stdin}), editor{env: a.env, stdin: a.stdin, screen: a.stderr, running: &a.editing}
	for {
		after, err := editing.editFile(ctx, path)
		if err != nil {
			return keepCopy(path, err)
		}
		if bytes.Equal(after, shown) {
			return errors.Join(a.out.writeDone("nothing was changed", editedConfig{user, false}), os.Remove(path))
		}
		err = a.admin(ctx, func(t *admin.Tasks) error { return t.Configs.Replace(ctx, user, before, after) })
		if err == nil {
			return errors.Join(a.out.writeDone("changed the configuration of "+user.String(), editedConfig{user, true}), os.Remove(path))
		}
		a.editing.Store(false)
		if again, fail := a.prompt.askAgain(answers, err); fail != nil || !again {
			return keepCopy(path, errors.Join(err, fail))
		}
	}
}

// writeCopy writes content into a temporary file that only its owner can read, and returns its
// path.
func writeCopy(user vocab.Username, content []byte) (path string, err error) {
	f, err := os.CreateTemp("", "lightweb-"+user.String()+"-*.json")
	if err != nil {
		return "", fmt.Errorf("write a copy to edit: %w", err)
	}
	if _, err = f.Write(content); err != nil {
		return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f.Name(), f.Close()
}

// keepCopy returns err with the path of the edited copy, which was not accepted and is kept.
func keepCopy(path string, err error) error {
	if e := fault.Of(err); e != nil {
		err = fault.Wrap(e.Kind, e.Public, err).WithHint("your copy is kept: " + path)
	} else {
		err = fmt.Errorf("edit %s, which is kept: %w", path, err)
	}
	return &keptCopy{path, err}
}

// keptCopy is the failure of an edit whose copy is kept.
type keptCopy struct {
	path string
	err  error
}

func (k *keptCopy) Error() string { return k.err.Error() }
func (k *keptCopy) Unwrap() error { return k.err }

// hintAtCopy returns the error of a command that a signal has stopped, which failed with err for
// that reason. If a copy is kept, the hint names it.
func hintAtCopy(stopped *interrupted, err error) error {
	if kept, ok := errors.AsType[*keptCopy](err); ok {
		return fault.Wrap(fault.Busy, stopped.Error(), stopped).WithHint("your copy is kept: " + kept.path)
	}
	return stopped
}

// editor starts the program in which a person edits a file.
type editor struct {
	env    environment
	stdin  io.Reader
	screen io.Writer

	running *atomic.Bool // see app.editing
}

// editFile opens the file in the editor, and returns the content of the file after the editor
// has ended.
func (e *editor) editFile(ctx context.Context, path string) ([]byte, error) {
	command := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if c := e.env.find(name); c != "" {
			command = c
		}
	}
	// The variable may hold a command with flags, which the shell splits.
	c := exec.CommandContext(ctx, "sh", "-c", command+` "$1"`, "sh", path)
	c.Stdin, c.Stdout, c.Stderr, c.Env = e.stdin, e.screen, e.screen, e.env
	before, fd := e.terminalState()
	e.running.Store(true)
	err := c.Run()
	if err != nil && before != nil { // an editor that was killed leaves the terminal as the editor needs it
		err = errors.Join(err, term.Restore(fd, before))
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, fmt.Sprintf("the editor %.100q failed", command), err)
	}
	return os.ReadFile(path)
}

// terminalState returns the settings of the terminal on standard input, and its file descriptor.
// The result before is nil if standard input is no terminal.
func (e *editor) terminalState() (before *term.State, fd int) {
	f, ok := e.stdin.(*os.File)
	if !ok {
		return nil, 0
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil { // it is no terminal
		return nil, 0
	}
	return before, int(f.Fd())
}
