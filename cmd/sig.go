package cmd

import "github.com/spf13/cobra"

func newSig(a *app) *cobra.Command {
	return newGroup("sig", "HTTP signatures", "sig helps with the signatures of requests between servers.", newSigExplain(a))
}
