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
	"strings"

	"github.com/spf13/cobra"

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
		Short: "Edit what a user has settled",
		Long: "edit opens a copy of the config.json of the user NAME in $VISUAL, or $EDITOR, or vi, also when the file is broken. The\n" +
			"copy is checked before it takes the file's place. When it cannot be used, edit says why and asks whether to edit\n" +
			"again; without a terminal, and when the answer is no, the copy is kept and named, and the exit code is 65. It is 73\n" +
			"when the file was changed meanwhile.",
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

// editConfig lets a person edit a copy of the file, and replaces the file when the copy can be
// used. The instance is open only before and after: a person takes as long as it takes.
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
	answers := bufio.NewReader(a.stdin)
	for {
		after, err := a.runEditor(ctx, path)
		if err != nil {
			return keepCopy(path, err)
		}
		if bytes.Equal(after, shown) {
			return errors.Join(a.out.writeDone("nothing was changed", editedConfig{user, false}), os.Remove(path))
		}
		err = a.admin(ctx, func(t *admin.Tasks) error { return t.Configs.Replace(user, before, after) })
		if err == nil {
			return errors.Join(a.out.writeDone("changed the configuration of "+user.String(), editedConfig{user, true}), os.Remove(path))
		}
		if again, fail := a.askAgain(answers, err); fail != nil || !again {
			return keepCopy(path, errors.Join(err, fail))
		}
	}
}

// writeCopy writes what is to be edited to a file that only its owner can read.
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

// keepCopy says where the words are that were not taken.
func keepCopy(path string, err error) error {
	if e := fault.Of(err); e != nil {
		return fault.Wrap(e.Kind, e.Public, err).WithHint("your copy is kept: " + path)
	}
	return fmt.Errorf("edit %s, which is kept: %w", path, err)
}

// runEditor opens the copy in the editor, and returns what it holds when the editor has ended.
func (a *app) runEditor(ctx context.Context, path string) ([]byte, error) {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if e := a.getenv(name); e != "" {
			editor = e
		}
	}
	// The variable holds a command with its flags, which the shell takes apart.
	c := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	c.Stdin, c.Stdout, c.Stderr, c.Env = a.stdin, a.stderr, a.stderr, a.env
	if err := c.Run(); err != nil {
		return nil, fault.Wrap(fault.Invalid, fmt.Sprintf("the editor %.100q failed", editor), err)
	}
	return os.ReadFile(path)
}

// askAgain reports whether the person wants to edit the words that were refused once more. Words
// that came too late are never taken.
func (a *app) askAgain(answers *bufio.Reader, refusal error) (bool, error) {
	if fault.KindOf(refusal) != fault.Invalid || !isTerminal(a.stdin) {
		return false, nil
	}
	fmt.Fprintf(a.stderr, "%s\nEdit again? [Y/n] ", cleanLine(fault.Public(refusal)))
	answer, err := answers.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	return !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "n"), nil
}
