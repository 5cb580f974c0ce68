package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/token"
)

// passwordSource says where a password is read from. The password itself is never a flag, because
// the list of processes shows flags.
type passwordSource struct {
	file  string
	stdin bool
}

func (s *passwordSource) addFlags(c *cobra.Command) {
	c.Flags().Var(newFlagText(&s.file, "FILE"), "password-file", "read the password from FILE")
	c.Flags().BoolVar(&s.stdin, "password-stdin", false, "read the password from standard input")
}

// givesPassword reports whether a flag names a source of the password.
func (a *app) givesPassword() bool {
	f := a.command.Flags()
	return f.Changed("password-file") || f.Changed("password-stdin")
}

// readPassword reads the password from the source that was given, or asks for it if no source was
// given.
func (a *app) readPassword(ctx context.Context, s passwordSource) (password string, err error) {
	if err := a.exclusive("password-file", "password-stdin"); err != nil {
		return "", err
	}
	switch {
	case s.stdin:
		password, err = readLine(endingReader{ctx, a.stdin})
	case a.command.Flags().Changed("password-file"):
		password, err = readPasswordFile(s.file)
	default:
		password, err = a.prompt.askPassword(ctx)
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

// readLine returns the text in r without a line break at its end. If the text is longer than any
// password may be, it reads only enough to show that.
func readLine(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, token.MostPassword+3))
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}
