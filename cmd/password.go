package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/token"
)

// passwordSource says where a password comes from: never from a flag, which the list of processes
// shows.
type passwordSource struct {
	file  string
	stdin bool
}

func (s *passwordSource) addFlags(c *cobra.Command) {
	c.Flags().Var(newFlagText(&s.file, "FILE"), "password-file", "read the password from FILE")
	c.Flags().BoolVar(&s.stdin, "password-stdin", false, "read the password from standard input")
}

// givesPassword reports whether a flag says where the password comes from.
func (a *app) givesPassword() bool {
	f := a.command.Flags()
	return f.Changed("password-file") || f.Changed("password-stdin")
}

// readPassword returns the password of the source that was given, or else asks for it.
func (a *app) readPassword(s passwordSource) (password string, err error) {
	if err := a.exclusive("password-file", "password-stdin"); err != nil {
		return "", err
	}
	switch {
	case s.stdin:
		password, err = readLine(a.stdin)
	case a.command.Flags().Changed("password-file"):
		password, err = readPasswordFile(s.file)
	default:
		password, err = a.askPassword()
	}
	if err != nil {
		return "", err
	}
	return password, token.CheckPassword(password)
}

func readPasswordFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fault.Wrap(fault.NotFound, fmt.Sprintf("the password file %.200q cannot be read", path), err)
	}
	defer f.Close()
	return readLine(f)
}

// readLine returns a text without the line break at its end. It reads no more than shows that the
// text is too long.
func readLine(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, token.MostPassword+3))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}

// askPassword asks twice, on a terminal, which does not show the answers.
func (a *app) askPassword() (string, error) {
	f, ok := a.stdin.(*os.File)
	if !ok || !isTerminal(f) {
		return "", fault.New(fault.Usage, "there is no terminal to ask for the password on").WithHint("give --password-file or --password-stdin")
	}
	var answers [2]string
	for n, prompt := range []string{"Password: ", "Again: "} {
		fmt.Fprint(a.stderr, prompt)
		b, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.stderr)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		answers[n] = string(b)
	}
	if answers[0] != answers[1] {
		return "", fault.New(fault.Unprocessable, "the passwords are not the same")
	}
	return answers[0], nil
}
