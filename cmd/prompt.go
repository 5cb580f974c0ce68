package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/lightweb/lightweb/engine/fault"
)

// prompt asks the person at the terminal. Questions go to standard error, and answers come from
// standard input.
type prompt struct {
	in  io.Reader
	out io.Writer
}

// endingReader reads from r until ctx ends, and returns the cause then. The read that is under way,
// which nothing can end, is left behind until the process ends.
type endingReader struct {
	ctx context.Context
	r   io.Reader
}

func (e endingReader) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buf, done := make([]byte, len(p)), make(chan result, 1)
	go func() {
		n, err := e.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-e.ctx.Done():
		return 0, context.Cause(e.ctx)
	}
}

// confirm asks before an action that cannot be undone. If yes is true, it does not ask. If yes
// is false and standard input is no terminal, it fails. It gives up when ctx ends.
func (p *prompt) confirm(ctx context.Context, what string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(p.in) {
		return fault.New(fault.Usage, what+" cannot be undone").WithHint("give --yes to do it without being asked")
	}
	fmt.Fprintf(p.out, "%s? It cannot be undone. [y/N] ", cleanLine(what))
	answer, err := bufio.NewReader(endingReader{ctx, p.in}).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return &exitError{exitFailed, errors.New("nothing was done")}
	}
	return nil
}

// askPassword asks for a password twice, on a terminal, and does not show the input. It gives up
// when ctx ends.
func (p *prompt) askPassword(ctx context.Context) (string, error) {
	f, ok := p.in.(*os.File)
	if !ok || !isTerminal(f) {
		return "", fault.New(fault.Usage, "there is no terminal to ask for the password on").WithHint("give --password-file or --password-stdin")
	}
	var answers [2]string
	for n, question := range []string{"Password: ", "Again: "} {
		fmt.Fprint(p.out, question)
		b, err := readHidden(ctx, int(f.Fd()))
		fmt.Fprintln(p.out)
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

// readHidden reads a line that the terminal does not show. If ctx ends first, it makes the
// terminal show typed text again, and returns the cause. The read, which nothing can end, is then
// left behind until the process ends.
func readHidden(ctx context.Context, fd int) ([]byte, error) {
	if ctx.Err() != nil { // the terminal must not begin to hide input
		return nil, context.Cause(ctx)
	}
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type answer struct {
		line []byte
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		line, err := term.ReadPassword(fd)
		answered <- answer{line, err}
	}()
	select {
	case a := <-answered:
		return a.line, a.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(fd, before))
	}
}

// askAgain reports whether the person wants to edit a refused configuration once more. It asks
// only if the content was refused as Invalid, because editing does not help after other failures,
// for instance if somebody else changed the configuration meanwhile.
func (p *prompt) askAgain(answers *bufio.Reader, refusal error) (bool, error) {
	if fault.KindOf(refusal) != fault.Invalid || !isTerminal(p.in) {
		return false, nil
	}
	fmt.Fprintf(p.out, "%s\nEdit again? [Y/n] ", cleanLine(fault.Public(refusal)))
	answer, err := answers.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	return !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "n"), nil
}
