package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newUserTokenRevoke(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "revoke NAME ID [flags]",
		Short:   "Revoke a token",
		Long:    "revoke ends the token ID of the user NAME for good: programs that use it are refused at once.",
		Example: "  lightweb user token revoke alice 0198c0de-7a51-7000-8000-000000000001 --yes",
		Args:    takesArgs("NAME", "ID"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(fmt.Sprintf("revoke the token %s of %s", args[1], user), yes); err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error {
				if err := t.Tokens.Revoke(ctx, user, args[1]); err != nil {
					return err
				}
				return a.out.writeDone("revoked "+args[1], map[string]any{"user": user, "id": args[1], "revoked": true})
			})
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// confirm asks before what cannot be undone. Where nobody can answer, --yes must have been given.
func (a *app) confirm(what string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(a.stdin) {
		return fault.New(fault.Usage, what+" cannot be undone").WithHint("give --yes to do it without being asked")
	}
	fmt.Fprintf(a.stderr, "%s? It cannot be undone. [y/N] ", cleanLine(what))
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return &exitError{exitFailed, errors.New("nothing was done")}
	}
	return nil
}
