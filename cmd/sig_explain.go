package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/explain"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/signature"
)

// maxKeyFile is the size of the largest key file that is read, in bytes.
const maxKeyFile = 256 << 10

func newSigExplain(a *app) *cobra.Command {
	var x explain.SignedRequest
	var at, key string
	c := &cobra.Command{
		Use:   "explain FILE [flags]",
		Short: "Show why a captured request is verified or refused",
		Long: "explain reads a signed request from FILE, or from standard input if FILE is -, and shows the\n" +
			"result of each check of the engine. It makes every check: one that needs a failed check is\n" +
			"not_reached. FILE has a request as raw HTTP, or the output of 'curl -v' followed by the body.\n" +
			"The head has at most 64 KiB, and the body 1 MiB.\n\n" +
			"explain fetches the signer's key, as federation does, and stores it. --offline uses only a\n" +
			"stored key. --key reads the key from a file and needs no database; a bare key does not say whose\n" +
			"it is. explain judges times as of the moment when the request was made, unless --at gives the\n" +
			"time of its arrival.\n\n" +
			"In a pipe it writes a line per check with name, result and finding, and a line for each line of\n" +
			"the signature base that begins with base and its number, separated by tabs. Exit code 0: it\n" +
			"verifies. 76: it does not. 77: the policy refuses its server. 65: FILE has no request.",
		Example: "  lightweb sig explain refused.http\n  curl -v … 2>&1 | lightweb sig explain - --key actor.json --origin https://example.org --json",
		Args:    takesArgs("FILE"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if err := a.exclusive("key", "offline"); err != nil {
				return err
			}
			if x.At, err = parseAt(at, time.Now()); err != nil {
				return err
			}
			if key != "" {
				if err := a.read(ctx, key, func(in io.Reader) (err error) { x.Key, err = io.ReadAll(io.LimitReader(in, maxKeyFile)); return err }); err != nil {
					return err
				}
			}
			if err := a.read(ctx, args[0], func(in io.Reader) (err error) { x.Request, x.Body, err = signature.ReadCapture(in); return err }); err != nil {
				return err
			}
			return a.runExplain(ctx, x)
		}),
	}
	c.Flags().StringVar(&key, "key", "", "take the signer's key from `FILE`: RSA as PEM, a Multikey, or the actor's document")
	c.Flags().BoolVar(&x.Offline, "offline", false, "use only a stored key, and fetch none")
	c.Flags().StringVar(&x.Origin, "origin", "", "the request was sent to `ORIGIN`, such as https://example.org; public_url if not given")
	c.Flags().StringVar(&at, "at", "", "the request came at `TIME`, such as 2026-03-01T12:00:00Z or now; when it was made if not given")
	return c
}

func parseAt(s string, now time.Time) (time.Time, error) {
	switch s {
	case "":
		return time.Time{}, nil
	case "now":
		return now, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fault.New(fault.Usage, fmt.Sprintf("--at %.40q is not a time such as 2026-03-01T12:00:00Z, or now", s))
	}
	return t, nil
}

// read opens the file and passes its content to the function from. If file is -, it passes
// standard input.
func (a *app) read(ctx context.Context, file string, from func(io.Reader) error) error {
	if file == "-" {
		return from(endingReader{ctx, a.stdin})
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return fault.New(fault.NotFound, fmt.Sprintf("there is no file %q", file))
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	defer f.Close()
	if err := from(f); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

func (a *app) runExplain(ctx context.Context, x explain.SignedRequest) error {
	show := func(e explain.SignatureReport, err error) error {
		if err == nil {
			err = a.out.showExplanation(e)
		}
		if err != nil {
			return err
		}
		return e.Err()
	}
	if x.Key == nil {
		return a.instance(ctx, instance.Open, func(in *instance.Instance) error { return show(explain.Signature(ctx, in, x)) })
	}
	c, err := a.config()
	if err != nil {
		return err
	}
	return show(explain.SignatureWithKey(ctx, c.Engine, x, a.logger(c)))
}

func (p *printer) showExplanation(e explain.SignatureReport) error {
	var rows [][]string
	add := func(label string, checks []explain.Check) {
		for _, c := range checks {
			rows = append(rows, []string{strings.TrimSpace(label + " " + c.Check), c.Result, c.Says})
		}
	}
	add("", e.Checks)
	for _, s := range e.Signatures {
		label := ""
		if len(e.Signatures) > 1 {
			label = s.Label
		}
		add(label, s.Checks)
		for n, line := range s.Base {
			rows = append(rows, []string{strings.TrimSpace(label + " base"), fmt.Sprint(n + 1), line})
		}
	}
	if e.Ignored != nil {
		rows = append(rows, []string{"activity", explain.TraceIgnored, e.Ignored.Says})
	}
	return p.writeTable([]string{"CHECK", "RESULT", "WHAT WAS FOUND"}, rows, e)
}
