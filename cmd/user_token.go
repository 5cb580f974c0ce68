package cmd

import (
	"github.com/spf13/cobra"
)

func newUserToken(a *app) *cobra.Command {
	return newGroup("token", "Tokens of a user's programs", "token makes, lists and revokes the tokens with which programs act for a user. Only a digest of a token is stored.",
		newUserTokenCreate(a), newUserTokenList(a), newUserTokenRevoke(a))
}
